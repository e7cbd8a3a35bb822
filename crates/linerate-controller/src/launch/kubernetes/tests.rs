//! The launcher with a `kubectl` that is a script: it notes how it is called, keeps what it is to create, and runs agents
//! on this host.

use linerate_model::fleet::Role;
use tempfile::TempDir;

use super::*;
use crate::launch::{Launched, Launcher};

/// What stands for `kubectl`: of the pods the first runs, the second's image is not found, and of a third nothing is
/// known.
const KUBECTL: &str = r#"#!/bin/sh
echo "$*" >> "ROOT/calls"
while :; do case "$1" in --*) shift;; *) break;; esac; done
case "$1 $2" in
    "create -f")
        cat > "ROOT/manifest"
        ! grep -q forbidden "ROOT/manifest" || { echo "Error from server (Forbidden): pods is forbidden" >&2; exit 1; };;
    "wait pods") exit 1;;
    "get nodes") echo '{"items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}]}';;
    "get pods")
        name="$(grep -o 'linerate-[0-9a-f]*' "ROOT/manifest" | head -n 1)"
        echo '{"items":[{"metadata":{"name":"'$name'-0"},"status":{"hostIP":"10.0.0.1","conditions":
            [{"type":"Ready","status":"True"}]}},{"metadata":{"name":"'$name'-1"},"status":{"containerStatuses":
            [{"state":{"waiting":{"reason":"ImagePullBackOff","message":"no such image"}}}]}}]}';;
    attach*)
        read -r token
        echo "token $token" >&2
        echo '{"program":"linerate","version":"1","port":7000,"certificate":"SHA256:00"}'
        cat > /dev/null
        touch "ROOT/was-taken-away";;
esac
"#;

struct Scene {
    folder: TempDir,
    kubernetes: Kubernetes,
}

impl Scene {
    fn new(image: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        // Not with an open file of this process, which another test's child might have at the moment.
        let draft = folder.path().join("draft");
        std::fs::write(&draft, KUBECTL.replace("ROOT", &root)).unwrap();
        let kubectl = folder.path().join("kubectl");
        let mut install = Command::new("install");
        let done = install.arg("-m700").arg(draft).arg(&kubectl).status();
        assert!(done.unwrap().success());
        let launch = KubernetesLaunch {
            namespace: Some("net".to_owned()),
            context: Some("lab".to_owned()),
            image: Some(image.to_owned()),
            node_selector: [("rack".to_owned(), "a".to_owned())].into(),
        };
        Self {
            kubernetes: Kubernetes {
                kubectl,
                ..Kubernetes::new(&launch, 5201)
            },
            folder,
        }
    }

    fn launched(self) -> (TempDir, Result<Launched, LaunchError>) {
        let hosts = ["n1", "n2", "n3"].map(host);
        let launched = Launcher::Kubernetes(self.kubernetes).launch(&hosts);
        (self.folder, launched)
    }
}

fn host(name: &str) -> FleetHost {
    FleetHost {
        name: name.into(),
        control: name.to_owned(),
        data: Vec::new(),
        role: Role::Any,
        groups: Vec::new(),
    }
}

#[test]
fn each_node_has_a_pod_and_none_is_left() {
    let (folder, launched) = Scene::new("linerate:1").launched();
    let launched = launched.unwrap();
    let [(_, first), (_, second), (_, third)] = launched.hosts() else {
        panic!("three hosts")
    };
    let agent = first.as_ref().unwrap();
    assert_eq!((&*agent.host, agent.port), ("10.0.0.1", 7000));
    let token = agent.token.clone();
    let why_not = |agent: &Result<LaunchedAgent, LaunchError>| match agent.as_ref().err() {
        Some(LaunchError::Failed { why, said }) => (why.clone(), said.clone()),
        _ => panic!("it has no reason"),
    };
    let (why, said) = why_not(second);
    assert_eq!(why, Unlaunched::Absent);
    assert!(said.contains("ImagePullBackOff"), "{said}");
    assert_eq!(why_not(third).0, Unlaunched::Late(READY));

    let calls = || std::fs::read_to_string(folder.path().join("calls")).unwrap();
    assert!(!calls().contains("delete"), "{}", calls());
    let logs = launched.take_away();
    assert_eq!(logs[0].text, format!("token {token}\n"));
    assert!(folder.path().join("was-taken-away").exists());
    let calls = calls();
    let all_to_one = calls
        .lines()
        .all(|call| call.starts_with("--context=lab --namespace=net "));
    assert!(all_to_one && !calls.contains(&token), "{calls}");
    let manifest = std::fs::read(folder.path().join("manifest")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let instance = &manifest["items"][0]["metadata"]["labels"][INSTANCE];
    let removal = format!(
        "delete pods --wait=false {REQUEST} --selector={INSTANCE}={}",
        instance.as_str().unwrap()
    );
    assert!(calls.lines().last().unwrap().ends_with(&removal), "{calls}");
}

#[test]
fn what_the_cluster_refuses_is_one_failure() {
    let (folder, launched) = Scene::new("forbidden").launched();
    let Some(LaunchError::Failed { why, said }) = launched.err() else {
        panic!("it is refused")
    };
    assert_eq!(why, Unlaunched::Refused);
    assert!(said.contains("pods is forbidden"), "{said}");
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    assert!(calls.contains("delete pods"), "some may be there: {calls}");
}

#[test]
fn nodes_are_those_with_the_labels_that_were_asked_for() {
    let scene = Scene::new("linerate:1");
    assert_eq!(
        scene.kubernetes.nodes().unwrap(),
        ["n1".into(), "n2".into()]
    );
    let calls = std::fs::read_to_string(scene.folder.path().join("calls")).unwrap();
    assert!(calls.contains("--selector rack=a"), "{calls}");
}

/// The fields of the core/v1 API that a manifest may have here, with the type that the API's reference gives them; a field of
/// another name or type is refused by the server or, worse, ignored.
const FIELDS: &[(&str, &[(&str, &str)])] = &[
    (
        "List",
        &[
            ("apiVersion", "string"),
            ("kind", "string"),
            ("items", "[]Pod"),
        ],
    ),
    (
        "Pod",
        &[
            ("apiVersion", "string"),
            ("kind", "string"),
            ("metadata", "ObjectMeta"),
            ("spec", "PodSpec"),
        ],
    ),
    (
        "ObjectMeta",
        &[("name", "string"), ("labels", "map[string]")],
    ),
    (
        "PodSpec",
        &[
            ("nodeName", "string"),
            ("hostNetwork", "boolean"),
            ("restartPolicy", "string"),
            ("activeDeadlineSeconds", "integer"),
            ("terminationGracePeriodSeconds", "integer"),
            ("automountServiceAccountToken", "boolean"),
            ("tolerations", "[]Toleration"),
            ("containers", "[]Container"),
        ],
    ),
    ("Toleration", &[("operator", "string")]),
    (
        "Container",
        &[
            ("name", "string"),
            ("image", "string"),
            ("args", "[]string"),
            ("stdin", "boolean"),
            ("stdinOnce", "boolean"),
        ],
    ),
];

#[test]
fn a_manifest_has_fields_of_the_api_with_their_types() {
    fn check(value: &Value, of: &str) {
        let is_fine = match of {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64(),
            "map[string]" => value
                .as_object()
                .is_some_and(|map| map.values().all(Value::is_string)),
            _ => match of.strip_prefix("[]") {
                Some(each) => {
                    let items = value.as_array().unwrap();
                    items.iter().for_each(|item| check(item, each));
                    true
                }
                None => {
                    let (_, fields) = FIELDS.iter().find(|(name, _)| *name == of).unwrap();
                    for (key, value) in value.as_object().unwrap() {
                        let field = fields.iter().find(|(name, _)| name == key);
                        check(
                            value,
                            field.unwrap_or_else(|| panic!("{of} has no {key}")).1,
                        );
                    }
                    true
                }
            },
        };
        assert!(is_fine, "{value} is no {of}");
    }
    let scene = Scene::new("linerate:1");
    let manifest = scene
        .kubernetes
        .manifest("linerate-01", &[host("n1"), host("n2")]);
    check(&manifest, "List");
    let specs: Vec<&Value> = items(&manifest).iter().map(|pod| &pod["spec"]).collect();
    assert_eq!(
        (&specs[0]["nodeName"], &specs[1]["nodeName"]),
        (&json!("n1"), &json!("n2"))
    );
    assert_eq!(
        specs[0]["hostNetwork"], true,
        "the node's own devices are measured"
    );
}
