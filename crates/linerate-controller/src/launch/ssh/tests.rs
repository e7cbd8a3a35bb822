//! The launcher with an `ssh` that is a script: it notes how it is called, and runs commands on this host with a home of its own for each
//! host.

use std::os::unix::fs::PermissionsExt as _;

use linerate_model::fleet::Role;
use tempfile::TempDir;

use super::*;
use crate::launch::{Launched, Launcher};

/// What stands for the program: it announces itself, tells what it was told, and stays until its standard input ends.
const AGENT: &str = r#"#!/bin/sh
read -r token
echo "token $token" >&2
echo "arguments $*" >&2
echo '{"program":"linerate","version":"1","port":7000,"certificate":"SHA256:00"}'
cat > /dev/null
touch "$HOME/was-taken-away"
"#;

/// What stands for `ssh`: a line of `calls` a call, and for each host a folder that is its home.
const SSH: &str = r#"#!/bin/sh
echo "$*" | tr '\n' ' ' >> "ROOT/calls"
echo >> "ROOT/calls"
case " $* " in *" -G "*) far=yes;; *) far=no;; esac
while [ "$1" != -- ]; do shift; done
if [ $far = yes ]; then
    echo "user me"
    echo "hostname $2.example"
    [ "$2" != behind ] || echo "proxyjump gate"
    exit
fi
case "$2" in
    closed) echo "me@closed: Permission denied (publickey)." >&2; exit 255;;
    strange) echo "Host key verification failed." >&2; exit 255;;
    nowhere) echo "ssh: Could not resolve hostname nowhere: Name or service not known" >&2; exit 255;;
    silent) exec sleep 600;;
    full) echo "cat: write error: No space left on device" >&2; exit 1;;
esac
mkdir -p "ROOT/$2"
export HOME="ROOT/$2" SSH_CONNECTION="10.0.0.9 4000 10.0.0.2 22"
unset XDG_CACHE_HOME
cd "$HOME"
echo "Welcome to $2"
eval "$3"
"#;

struct Scene {
    folder: TempDir,
    launch: SshLaunch,
}

impl Scene {
    fn new(launch: SshLaunch) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scene = Self { launch, folder };
        let root = scene.path("");
        let root = root.to_str().unwrap().trim_end_matches('/');
        scene.write("ssh", &SSH.replace("ROOT", root));
        scene.write("agent", AGENT);
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a program. Not with an open file of this process, which another test's child might have at the moment:
    /// such a program is busy.
    fn write(&self, name: &str, text: &str) {
        let draft = self.path("draft");
        std::fs::write(&draft, text).unwrap();
        let mut install = Command::new("install");
        let done = install
            .arg("-m700")
            .arg(draft)
            .arg(self.path(name))
            .status();
        assert!(done.unwrap().success());
    }

    fn launched(&self, hosts: &[&str]) -> Launched {
        self.launched_within(hosts, START)
    }

    fn launched_within(&self, hosts: &[&str], within: Duration) -> Launched {
        let host = |name: &&str| FleetHost {
            name: (*name).into(),
            control: (*name).to_owned(),
            data: Vec::new(),
            role: Role::Any,
            groups: Vec::new(),
        };
        let hosts: Vec<FleetHost> = hosts.iter().map(host).collect();
        let (ssh, agent) = (self.path("ssh"), self.path("agent"));
        let ssh = Ssh::with(ssh, &self.launch, 0, agent, within).unwrap();
        Launcher::Ssh(ssh).launch(&hosts).unwrap()
    }

    /// Returns how `ssh` was called since this was asked last.
    fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        let _ = std::fs::remove_file(self.path("calls"));
        calls.lines().map(str::to_owned).collect()
    }

    /// Returns the copies of a host.
    fn copies(&self, directory: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path(directory)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn why_not(launched: &Launched, host: &str) -> Unlaunched {
    let mut hosts = launched.hosts().iter();
    let (_, agent) = hosts.find(|(name, _)| *name.0 == *host).unwrap();
    match agent.as_ref().err() {
        Some(LaunchError::Failed { why, .. }) => why.clone(),
        Some(other) => panic!("{other}"),
        None => panic!("{host} has an agent"),
    }
}

#[test]
fn the_program_is_copied_where_it_is_absent_or_another() {
    let scene = Scene::new(SshLaunch::default());
    let launched = scene.launched(&["a", "b"]);
    for (name, agent) in launched.hosts() {
        let agent = agent.as_ref().unwrap();
        assert_eq!(
            (&*agent.host, agent.port),
            (&*format!("{name}.example"), 7000)
        );
        assert_eq!((&*agent.certificate, agent.payload), ("SHA256:00", None));
    }
    let first = scene.calls();
    assert_eq!(
        first.len(),
        8,
        "what a name means, a look, a copy and a start: {first:#?}"
    );
    let [copy] = &scene.copies("a/.cache/linerate")[..] else {
        panic!("one copy");
    };
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    drop(launched);

    drop(scene.launched(&["a", "b"]));
    let again = scene.calls();
    assert_eq!(again.len(), 4, "it is there: {again:#?}");

    std::fs::write(copy, "#!/bin/sh\necho broken\n").unwrap();
    drop(scene.launched(&["a"]));
    assert_eq!(scene.calls().len(), 4, "it is another by its content");
    assert_eq!(std::fs::read_to_string(copy).unwrap(), AGENT);

    scene.write("agent", &format!("{AGENT}# newer\n"));
    drop(scene.launched(&["a"]));
    assert_eq!(scene.calls().len(), 4, "another version");
    assert_eq!(scene.copies("a/.cache/linerate").len(), 2);
}

#[test]
fn no_command_line_has_the_token_and_all_have_what_was_asked_for() {
    let scene = Scene::new(SshLaunch {
        user: Some("me".to_owned()),
        config: Some("/etc/ours".into()),
        jump: None,
        options: vec!["ConnectTimeout=60".to_owned()],
        program: None,
        directory: Some("it's a place".to_owned()),
    });
    let launched = scene.launched(&["a"]);
    let token = launched.hosts()[0].1.as_ref().unwrap().token.clone();
    assert_eq!(token.len(), 64);
    let calls = scene.calls();
    assert_eq!(calls.len(), 4, "{calls:#?}");
    for call in &calls {
        assert!(!call.contains(&token), "{call}");
        assert!(call.contains("-o BatchMode=yes "), "{call}");
        assert!(call.contains("-F /etc/ours -l me "), "{call}");
        let asked = call.find("ConnectTimeout=60").unwrap();
        assert!(asked < call.find("ConnectTimeout=15").unwrap(), "{call}");
    }
    assert_eq!(scene.copies("a/it's a place").len(), 1);
    let logs = launched.take_away();
    let [log] = &logs[..] else { panic!("one log") };
    assert!(
        log.text.contains(&format!("token {token}\n")),
        "{}",
        log.text
    );
    assert!(log.text.contains("serve --launched"), "{}", log.text);
    assert!(!log.is_early);
    assert!(scene.path("a/was-taken-away").exists());
}

#[test]
fn a_host_that_fails_keeps_no_other_from_its_agent() {
    let scene = Scene::new(SshLaunch::default());
    let launched = scene.launched(&["closed", "a", "strange", "nowhere", "full"]);
    let check = |host, why| assert_eq!(why_not(&launched, host), why);
    check("closed", Unlaunched::Denied);
    check("strange", Unlaunched::HostKey);
    check("nowhere", Unlaunched::Unreachable);
    check("full", Unlaunched::Space);
    let fine = launched.hosts().iter().filter(|(_, agent)| agent.is_ok());
    assert_eq!(fine.map(|(name, _)| &*name.0).collect::<Vec<_>>(), ["a"]);
    let told = launched.hosts()[0].1.as_ref().err().unwrap();
    assert!(told.to_string().contains("me@closed"), "{told}");
    assert_eq!(launched.take_away().len(), 1);

    let late = Duration::from_millis(100);
    let launched = scene.launched_within(&["silent"], late);
    assert_eq!(why_not(&launched, "silent"), Unlaunched::Late(late));
}

#[test]
fn an_agent_behind_others_is_reached_by_a_port_of_this_host() {
    let scene = Scene::new(SshLaunch::default());
    let launched = scene.launched(&["behind"]);
    let agent = launched.hosts()[0].1.as_ref().unwrap();
    assert_eq!((&*agent.host, agent.payload_port), ("127.0.0.1", 7000));
    assert_eq!(agent.payload, "10.0.0.2".parse().ok());
    scene.calls();
    // The script that stands for `ssh` runs what follows the host: here nothing.
    let mut stream = std::net::TcpStream::connect((&*agent.host, agent.port)).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let calls = scene.calls();
    assert!(
        calls[0].contains(" -W 127.0.0.1:7000 -- behind"),
        "{calls:?}"
    );
}

#[test]
fn a_program_for_another_architecture_is_not_copied() {
    let scene = Scene::new(SshLaunch::default());
    let mut file = [0; 64];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[18] = 243;
    assert_eq!(machine_of(&file), Some("riscv64"));
    std::fs::write(scene.path("agent"), file).unwrap();
    let launched = scene.launched(&["a"]);
    let Unlaunched::Architecture { ours, .. } = why_not(&launched, "a") else {
        panic!("{}", why_not(&launched, "a"));
    };
    assert_eq!(ours, "riscv64");
    assert_eq!(scene.calls().len(), 2);
    assert!(!scene.path("a/.cache").exists());
}
