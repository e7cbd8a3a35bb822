//! `linerate lab`: what it refuses, what it hands through, and that nothing is left of it.

use crate::common::call::Call;
use crate::common::lab::unique_name;
use crate::common::{NamedLab, copied, file, folder, is_root, json, linerate, skip};

#[test]
fn impossible_labs_are_refused() {
    let check = |flags: &[&str], said: &[&str]| {
        linerate(&["lab", "up"]).words(flags).run().failed(2, said);
    };
    check(&["Bad_Name"], &["`Bad_Name`", "a to z, 0 to 9"]);
    check(&[&"x".repeat(33)], &["1 to 32 characters"]);
    check(&["--clients", "0"], &["--clients", "1.."]);
    check(&["--clients", "64"], &["65", "1 to 64"]);
    check(&["--loss", "0.6"], &["loss", "0.6"]);
    check(&["--loss", "x"], &["--loss", "x"]);
    check(&["--loss", "60%"], &["loss", "0.6"]);
    check(&["--mtu", "100"], &["mtu", "100", "576"]);
    check(&["--queues", "99"], &["queues", "99", "16"]);
    check(&["--delay", "1h"], &["delay", "2 s"]);
    check(&["--rate", "1k"], &["rate", "1 Mbit/s"]);
    check(&["--rate", "fast"], &["--rate", "fast"]);
    check(&["--preset", "moon"], &["--preset", "moon", "bloated"]);
    check(&["--jitter", "3s"], &["jitter", "3 s", "0 to 2 s"]);
    check(&["--reorder", "60%"], &["reorder", "0.6", "0 to 0.5"]);
    check(&["--duplicate", "2"], &["duplicate", "0 to 1"]);
    check(&["--queue", "1K"], &["queue", "1 KiB", "1 GiB"]);
    check(&["--up-rate", "1k"], &["up.rate", "client1", "1 Mbit/s"]);
    check(&["--up-delay", "3s"], &["up.delay", "0 to 2 s"]);
    check(&["--up-queue", "1K"], &["up.queue", "1 KiB"]);
    check(
        &["--file", "/nosuch.toml"],
        &["cannot read the lab file /nosuch.toml"],
    );
    check(&["--file", "x", "--loss", "0.1"], &["--file", "--loss"]);
    check(&["--file", "x", "--preset", "wan"], &["--file", "--preset"]);
}

#[test]
fn lab_files_name_file_and_key() {
    let folder = folder();
    let check = |text: &str, said: &[&str]| {
        let path = file(&folder, "lab.toml", text);
        let mut said = said.to_vec();
        said.push("lab.toml");
        linerate(&["lab", "up", "--file", &path])
            .run()
            .failed(2, &said);
    };
    check("", &["name"]);
    check("name = \"a\"\n", &["number of hosts", "1 to 64"]);
    check("name = \"a\"\ncolour = 1\n", &["colour"]);
    check(
        "name = \"a\"\n[[host]]\nname = \"b\"\nlink = { speed = 1 }\n",
        &["speed", "line 4"],
    );
    check(
        "name = \"a\"\n[[host]]\nname = \"b\"\n[[host]]\nname = \"b\"\n",
        &["`b`", "one host of each name"],
    );
    check(
        "name = \"a\"\n[[host]]\nname = \"b\"\nlink = { loss = 2.0 }\n",
        &["loss of host `b`", "2"],
    );
}

#[test]
fn what_is_not_there_is_named() {
    let name = unique_name();
    linerate(&["lab", "exec", &name, "server", "true"])
        .run()
        .failed(1, &[&format!("lab `{name}`"), "linerate lab list"]);
    linerate(&["lab", "down", &name])
        .run()
        .failed(1, &[&format!("lab `{name}`"), "linerate lab list"]);
}

#[test]
fn a_program_in_a_host_keeps_its_words_and_its_exit_code() {
    let Some(lab) = NamedLab::up(&["--delay", "5ms"]) else {
        return;
    };
    let exec = |host: &str, words: &[&str]| {
        linerate(&["lab", "exec", &lab.name, host])
            .words(words)
            .run()
    };
    let said = exec("server", &["sh", "-c", "hostname; echo oh >&2; exit 7"]);
    assert_eq!(
        (said.code, said.out.as_str(), said.err.as_str()),
        (7, "server\n", "oh\n")
    );
    assert_eq!(exec("client1", &["sh", "-c", "kill -9 $$"]).code, 137);
    // SIGHUP and SIGTERM, as masks of proc_pid_status(5).
    let blocked = exec(
        "server",
        &["sed", "-n", "s/^SigBlk:\\s*//p", "/proc/self/status"],
    )
    .done();
    let blocked = u64::from_str_radix(blocked.out.trim(), 16).expect("a mask");
    assert_eq!(blocked & (1 | 1 << 14), 0, "{blocked:x}");
    let until = "trap 'exit 5' TERM; echo on; while :; do sleep 0.05; done";
    let mut asked = linerate(&["lab", "exec", &lab.name, "server", "sh", "-c", until]).start();
    asked.wait_for("on");
    asked.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(asked.end().code, 5, "the program ends as it likes");
    exec("server", &["/nosuch/program"]).failed(127, &["/nosuch/program"]);
    let known = exec("client1", &["getent", "hosts", "server", "server.ctl"]);
    assert_eq!(known.code, 0, "{known:?}");
    for address in [lab.address("server"), "10.78.0.1".to_owned()] {
        assert!(known.out.contains(&address), "{known:?}");
    }
    let own = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(!own.contains("server.ctl"), "names stay in the lab: {own}");
    let shell = exec("client1", &[]);
    assert_eq!(
        (shell.code, shell.out.as_str()),
        (0, ""),
        "no input, no words"
    );
    exec("nosuch", &["true"]).failed(1, &["`nosuch`", "server, client1", "next:"]);
    linerate(&["lab", "up", &lab.name])
        .run()
        .failed(1, &[&lab.name, "linerate lab down"]);
    assert_eq!(
        exec("server", &["true"]).code,
        0,
        "the first one is untouched"
    );
    let listed = linerate(&["lab", "list"]).run().done().out;
    assert!(listed.contains(&format!("{}  up", lab.name)), "{listed}");
    let document = json(&linerate(&["lab", "list", "--json"]).run().done().out);
    let labs = document["labs"].as_array().expect("labs");
    let this = labs.iter().find(|one| one["name"] == lab.name.as_str());
    let host = &this.expect("it is listed")["hosts"][1];
    assert_eq!(host["name"], "client1", "{host}");
    assert_eq!(host["round_trip_ns"], 20_000_000, "{host}");
    assert_eq!(host["delay_ns"], 5_000_000, "{host}");
    linerate(&["lab", "down", &lab.name]).run().done();
    assert!(!lab.has_directory());
    let listed = linerate(&["lab", "list"]).run().done().out;
    // Those of other tests may begin alike.
    let is_there = listed.contains(&format!("{}  ", lab.name));
    assert!(!is_there, "{listed}");
}

#[test]
fn a_lab_that_crashed_is_listed_and_cleaned_up() {
    if !is_root() {
        return skip("no privilege: a private /run needs root");
    }
    // In a mount namespace of its own, so that `--all` finds no other lab.
    let script = r#"
        set -e
        mount --make-rshared /
        mount -t tmpfs none /run
        mkdir /run/medium
        mount -t tmpfs none /run/medium
        linerate=$0
        trap '$linerate lab down --all >/dev/null 2>&1' EXIT
        exec 9>/run/busy
        flock 9
        $linerate lab up one >/dev/null 2>&1
        $linerate lab up two >/dev/null 2>&1
        # What a lab got from whoever made it, and what is mounted here, it does not hold.
        exec 9>&-
        flock -n /run/busy true
        umount /run/medium
        echo == held; $linerate lab exec two server grep /run/medium /proc/mounts || true
        pids=$(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' /run/linerate/lab/one/state.json)
        kill -9 ${pids%%[!0-9]*}
        # The hosts are killed with their holder, each in its own time.
        for pid in $pids; do
            while grep -qs '^State:.[^ZX]' /proc/$pid/status; do sleep 0.01; done
        done
        echo == crashed; $linerate lab list
        $linerate lab exec one server true && echo "ran" || echo "exec: $?"
        echo == down; $linerate lab down --all 2>&1
        echo == after; $linerate lab list 2>&1
        echo == left; find /run/linerate -mindepth 2 -not -name .lock
    "#;
    let said = Call::of("unshare")
        .words(&[
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            script,
            crate::common::call::PROGRAM,
        ])
        .run()
        .done();
    let part = |name: &str| {
        let rest = said.out.split(&format!("== {name}\n")).nth(1);
        let rest = rest.unwrap_or_else(|| panic!("no {name}: {said:?}"));
        rest.split("== ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(part("held"), "", "{said:?}");
    let crashed = part("crashed");
    assert!(
        crashed.contains("one  crashed; remove it with `linerate lab down --all`"),
        "{said:?}"
    );
    assert!(crashed.contains("two  up"), "{said:?}");
    assert!(crashed.contains("exec: 1"), "{said:?}");
    assert!(part("down").contains("removed one, two"), "{said:?}");
    assert!(part("after").contains("no lab is up"), "{said:?}");
    assert_eq!(part("left"), "", "{said:?}");
}

#[test]
fn without_the_privilege_the_lab_says_what_is_missing() {
    if !is_root() {
        return skip("no privilege: taking privileges away needs root");
    }
    let folder = folder();
    let program = folder.path().join("program");
    copied(crate::common::call::PROGRAM, &program);
    // The kernel grants no user namespace below a root directory that is not the mount
    // namespace's own (user_namespaces(7)): an ordinary user in a chroot has no way to a lab.
    let script = r#"
        set -e
        mount --rbind / /mnt
        chown 65534 "$1"
        shift
        exec chroot --userspec=65534:65534 /mnt "$@"
    "#;
    let directory = folder.path().display().to_string();
    let program = program.display().to_string();
    let call = |words: &[&str]| {
        Call::of("unshare")
            .words(&[
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                script,
                "sh",
            ])
            .words(&[&directory, &program])
            .words(words)
            .with("XDG_RUNTIME_DIR", &directory)
            .run()
    };
    let out = format!("{directory}/out");
    let said = [
        "namespace for the lab",
        "CAP_SYS_ADMIN and CAP_NET_ADMIN",
        "run as root",
    ];
    call(&["study", "--lab", "--out", &out]).failed(1, &said);
    call(&["lab", "up"]).failed(1, &said);
    let experiment = crate::common::repository().join("experiments/first-look.toml");
    let experiment = experiment
        .canonicalize()
        .expect("it is there")
        .display()
        .to_string();
    // The file may lie where an ordinary user cannot read.
    let copy = format!("{directory}/first-look.toml");
    std::fs::copy(experiment, &copy).expect("the temporary directory has room");
    call(&["run", "--lab", "--experiment", &copy]).failed(1, &said);
    assert!(!std::path::Path::new(&out).exists(), "nothing was begun");
}
