//! The launcher with an `srun` and a `salloc` that are scripts: they note how they are called, and run a task on this
//! host for each node.

use std::collections::BTreeMap;

use linerate_model::fleet::Role;
use tempfile::TempDir;

use super::*;
use crate::launch::{Launched, Launcher};

/// What stands for the program: it announces itself, tells what it was told, and stays until its standard input ends.
const AGENT: &str = r#"#!/bin/sh
[ "$SLURMD_NODENAME" != ends ] || exit 3
read -r token
echo "token $token" >&2
echo "arguments $*" >&2
echo "{\"program\":\"linerate\",\"version\":\"1\",\"port\":7000,\"certificate\":\"of-$SLURMD_NODENAME\",\"node\":\"$SLURMD_NODENAME\"}"
cat > /dev/null
touch "ROOT/$SLURMD_NODENAME-was-taken-away"
"#;

/// What stands for `salloc`: it becomes what it is to run.
const SALLOC: &str = r#"#!/bin/sh
echo "salloc $*" >> "ROOT/calls"
case " $* " in
    *" --partition=none "*) echo "salloc: error: Job submit/allocate failed: Invalid partition name specified" >&2; exit 1;;
    *" --partition=busy "*) echo "salloc: error: Unable to allocate resources: Connection timed out" >&2; exit 1;;
esac
while [ "$1" != "ROOT/srun" ]; do shift; done
exec "$@"
"#;

/// What stands for `srun`: a task a node, by threes the last node first, each with its number before its lines.
const SRUN: &str = r#"#!/bin/sh
echo "srun $*" >> "ROOT/calls"
nodes="x y"
for word; do
    shift
    case "$word" in
        --nodelist=*) nodes="$(echo "${word#*=}" | tr , ' ')";;
        --bcast=*) echo "srun: fatal: REQUEST_FILE_BCAST(x): No such file or directory" >&2; exit 1;;
        -*) ;;
        *) program="$word"; break;;
    esac
done
[ "$nodes" != silent ] || exec sleep 600
[ -x "$program" ] || { echo "0: slurmstepd-x: error: execve(): $program: No such file or directory" >&2; exit 2; }
task=0
pipes=
for node in $nodes; do
    pipe="ROOT/$node-input"
    mkfifo "$pipe"
    pipes="$pipes $pipe"
    { SLURMD_NODENAME="$node" "$program" "$@" <"$pipe" 2>&1 >&3 3>&- | sed -u "s/^/$task: /" >&2
      [ "$node" != ends ] || echo "srun: error: $node: task $task: Exited with exit code 3" >&2; } 3>&1 | sed -u "s/^/$task: /" &
    task=$((task + 1))
done
trap '' PIPE
tee $pipes >/dev/null
wait
rm -f $pipes
"#;

struct Scene {
    folder: TempDir,
    launch: SlurmLaunch,
    nodes: Nodes,
}

impl Scene {
    fn new(launch: SlurmLaunch, nodes: Nodes) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scene = Self {
            folder,
            launch,
            nodes,
        };
        for (name, text) in [("agent", AGENT), ("salloc", SALLOC), ("srun", SRUN)] {
            scene.write(name, text);
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a program. Not with an open file of this process, which another test's child might have at the moment:
    /// such a program is busy.
    fn write(&self, name: &str, text: &str) {
        let draft = self.path("draft");
        let root = self.folder.path().display().to_string();
        std::fs::write(&draft, text.replace("ROOT", &root)).unwrap();
        let mut install = Command::new("install");
        let done = install
            .arg("-m700")
            .arg(draft)
            .arg(self.path(name))
            .status();
        assert!(done.unwrap().success());
    }

    fn launched(self: &Scene, hosts: &[&str]) -> Result<Launched, LaunchError> {
        self.launched_within(hosts, START)
    }

    fn launched_within(&self, hosts: &[&str], within: Duration) -> Result<Launched, LaunchError> {
        let host = |name: &&str| FleetHost {
            name: (*name).into(),
            control: format!("{name}.mgmt"),
            data: Vec::new(),
            role: Role::Any,
            groups: Vec::new(),
        };
        let hosts: Vec<FleetHost> = hosts.iter().map(host).collect();
        let slurm = Slurm {
            salloc: self.path("salloc"),
            srun: self.path("srun"),
            launch: self.launch.clone(),
            port: 0,
            program: self.path("agent"),
            nodes: match self.nodes {
                Nodes::Allocated => Nodes::Allocated,
                Nodes::Asked => Nodes::Asked,
            },
            queue: Duration::ZERO,
            start_within: within,
        };
        Launcher::Slurm(slurm).launch(&hosts)
    }

    /// Returns how Slurm was called.
    fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

fn why_not(error: &LaunchError) -> Unlaunched {
    match error {
        LaunchError::Failed { why, .. } => why.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn one_srun_has_an_agent_on_each_node() {
    let scene = Scene::new(SlurmLaunch::default(), Nodes::Allocated);
    let launched = scene.launched(&["b", "a"]).unwrap();
    let mut tokens = Vec::new();
    for (name, agent) in launched.hosts() {
        let agent = agent.as_ref().unwrap();
        assert_eq!(
            (&*agent.host, agent.port, &*agent.certificate),
            (&*format!("{name}.mgmt"), 7000, &*format!("of-{name}"))
        );
        tokens.push(agent.token.clone());
    }
    assert_eq!((tokens[0].len(), &tokens[0]), (64, &tokens[1]));
    let calls = scene.calls();
    let [call] = &calls[..] else {
        panic!("{calls:#?}")
    };
    for word in ["--nodes=2", "--ntasks=2", "--nodelist=b,a", "--overlap"] {
        assert!(call.contains(word), "{call}");
    }
    assert!(!call.contains(&tokens[0]), "{call}");
    let logs = launched.take_away();
    for (log, node) in logs.iter().zip(["b", "a"]) {
        assert_eq!((&*log.host.0, log.is_early), (node, false));
        let expected = format!("token {}\narguments serve --launched --port=0\n", tokens[0]);
        assert_eq!(log.text, expected);
        assert!(scene.path(&format!("{node}-was-taken-away")).exists());
    }
}

#[test]
fn an_allocation_is_made_where_there_is_none() {
    let launch = SlurmLaunch {
        partition: Some("net".to_owned()),
        account: Some("ours".to_owned()),
        nodes: Some(2),
        time: Some("10".to_owned()),
        options: vec!["--qos=high".to_owned()],
        ..SlurmLaunch::default()
    };
    let scene = Scene::new(launch, Nodes::Asked);
    let launched = scene.launched(&[]).unwrap();
    let chosen = launched.hosts().iter().map(|(name, agent)| {
        let agent = agent.as_ref().unwrap();
        (&*name.0, &*agent.host)
    });
    assert_eq!(
        chosen.collect::<Vec<_>>(),
        [("x", "x"), ("y", "y")],
        "nodes that Slurm chose are called by their names"
    );
    let calls = scene.calls();
    assert_eq!(calls.len(), 2, "{calls:#?}");
    for word in [
        "--partition=net",
        "--account=ours",
        "--time=10",
        "--qos=high",
        "--nodes=2",
        "--exclusive",
    ] {
        assert!(calls[0].contains(word), "{}", calls[0]);
    }
    assert!(!calls[1].contains("--exclusive"), "{}", calls[1]);
}

#[test]
fn a_task_that_ends_keeps_no_other_from_its_agent() {
    let scene = Scene::new(SlurmLaunch::default(), Nodes::Allocated);
    let launched = scene.launched(&["a", "ends", "b"]).unwrap();
    let there: BTreeMap<&str, bool> = launched
        .hosts()
        .iter()
        .map(|(name, agent)| (&*name.0, agent.is_ok()))
        .collect();
    assert_eq!(
        there.into_iter().collect::<Vec<_>>(),
        [("a", true), ("b", true), ("ends", false)]
    );
    let error = launched.hosts()[1].1.as_ref().err().unwrap();
    assert_eq!(why_not(error), Unlaunched::Ended);
    assert!(error.to_string().contains("exit code 3"), "{error}");
    assert!(!error.to_string().contains("token"), "{error}");
}

#[test]
fn what_keeps_all_from_their_agents_is_one_failure() {
    let check = |launch: SlurmLaunch, expected: Unlaunched| {
        let scene = Scene::new(launch, Nodes::Asked);
        let error = scene.launched(&["a", "b"]).err().unwrap();
        assert_eq!(why_not(&error), expected, "{error}");
    };
    let of = |partition: &str| SlurmLaunch {
        partition: Some(partition.to_owned()),
        ..SlurmLaunch::default()
    };
    check(of("none"), Unlaunched::Refused);
    check(of("busy"), Unlaunched::Busy);
    let copied = SlurmLaunch {
        directory: Some("/nosuch".into()),
        ..SlurmLaunch::default()
    };
    check(copied, Unlaunched::Absent);

    let scene = Scene::new(SlurmLaunch::default(), Nodes::Allocated);
    std::fs::remove_file(scene.path("agent")).unwrap();
    let error = scene.launched(&["a"]).err().unwrap();
    assert_eq!(why_not(&error), Unlaunched::Absent, "{error}");
    let late = Duration::from_millis(100);
    let error = scene.launched_within(&["silent"], late).err().unwrap();
    assert_eq!(why_not(&error), Unlaunched::Late(late), "{error}");
    std::fs::remove_file(scene.path("srun")).unwrap();
    let error = scene.launched(&["a"]).err().unwrap();
    assert!(matches!(error, LaunchError::Start { .. }), "{error}");
}

#[test]
fn the_nodes_of_an_allocation_are_those_that_scontrol_names() {
    let scene = Scene::new(SlurmLaunch::default(), Nodes::Allocated);
    scene.write(
        "scontrol",
        "#!/bin/sh\n[ \"$*\" = 'show hostnames n[1-2]' ] || exit 1\necho n1; echo n2\n",
    );
    let scontrol = scene.path("scontrol");
    let nodes = nodes_of(&scontrol, "n[1-2]").unwrap();
    assert_eq!(nodes, ["n1".into(), "n2".into()]);
    assert!(nodes_of(&scontrol, "n[").is_err());
    let absent = nodes_of(&scene.path("absent"), "n1");
    assert!(matches!(absent, Err(LaunchError::Start { .. })));
}
