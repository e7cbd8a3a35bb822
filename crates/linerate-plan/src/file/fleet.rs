//! Fleet files: text to [`FleetFile`].

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use linerate_model::Nanos;
use linerate_model::fleet::{
    FLEET_HOSTS_MAX, FleetFile, FleetHost, InStep, KubernetesLaunch, Launch, Multicast, Role,
    SlurmLaunch, SshLaunch,
};
use linerate_model::manner::Named;
use toml::Spanned;

use super::error::ReadError;
use super::raw::Length;
use super::source::{Source, Spot};

/// A whole file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFleet {
    #[serde(rename = "format")]
    _format: u32,
    name: Option<String>,
    port: Option<u16>,
    token_file: Option<Spanned<PathBuf>>,
    skew_max: Option<Length>,
    start: Option<Spanned<String>>,
    multicast: Option<Spanned<RawMulticast>>,
    launch: Option<Spanned<String>>,
    ssh: Option<SshLaunch>,
    slurm: Option<SlurmLaunch>,
    kubernetes: Option<KubernetesLaunch>,
    #[serde(default)]
    host: Vec<RawHost>,
}

/// `[multicast]`
#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawMulticast {
    group: SocketAddrV4,
    ttl: u8,
}

impl Default for RawMulticast {
    /// A group of the site (RFC 2365), and its own network.
    fn default() -> Self {
        Self {
            group: SocketAddrV4::new(Ipv4Addr::new(239, 255, 76, 82), 5202),
            ttl: 1,
        }
    }
}

/// `[[host]]`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHost {
    name: Spanned<String>,
    control: Option<Spanned<String>>,
    data: Option<Spanned<Texts>>,
    role: Option<Spanned<String>>,
    #[serde(default)]
    groups: Vec<String>,
}

/// A text, or a list of them.
#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "text in quotes, or a list of such")]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn all(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

/// The launchers, by their words.
const LAUNCHERS: &[&str] = &["agent", "ssh", "slurm", "kubernetes"];
/// How hosts begin at the same moment, by its words.
const INSTANT: &str = "instant";
const MULTICAST: &str = "multicast";
/// What stands for a host's name and for its number in the other keys of a range of hosts.
const NAME: &str = "{name}";
const NUMBER: &str = "{n}";

/// Reads the fleet in `text`; `origin` is the name of the file in messages.
pub fn read_fleet(text: &str, origin: &str) -> Result<FleetFile, ReadError> {
    let source = Source { text, origin };
    source.check_format()?;
    let file: RawFleet = toml::from_str(text).map_err(|error| source.syntax(&error))?;
    let launch = launch(&source, &file)?;
    let in_step = in_step(&source, &file)?;
    let mut hosts = Vec::new();
    for raw in &file.host {
        let spot = source.at("host.name", raw.name.span());
        let room = FLEET_HOSTS_MAX - hosts.len();
        for (name, number) in range(&spot, raw.name.get_ref(), room)? {
            hosts.push(host(&source, raw, name, &number)?);
        }
    }
    let mut seen = HashSet::new();
    if let Some(twice) = hosts.iter().find(|host| !seen.insert(&host.name)) {
        let spot = source.at("host.name", 0..0);
        return Err(spot.wrong(&format!("two hosts are called `{}`", twice.name)));
    }
    if let (Launch::Slurm(slurm), false) = (&launch, hosts.is_empty())
        && slurm.nodes.is_some()
    {
        let spot = source.at(
            "slurm.nodes",
            source.span_in("[slurm]", "nodes").unwrap_or(0..0),
        );
        return Err(spot.wrong("`nodes` does nothing with [[host]], each of which is a node"));
    }
    if hosts.is_empty() && matches!(launch, Launch::Agent | Launch::Ssh(_)) {
        let spot = source.at("host", 0..0);
        return Err(spot.wrong("it has no [[host]]: each has a `name`"));
    }
    Ok(FleetFile {
        name: file.name,
        port: file.port,
        token_file: file.token_file.map(Spanned::into_inner),
        in_step,
        launch,
        hosts,
    })
}

fn in_step(source: &Source<'_>, file: &RawFleet) -> Result<InStep, ReadError> {
    let word = file.start.as_ref().map_or(INSTANT, |word| word.get_ref());
    let section = file.multicast.as_ref();
    let multicast = match (word, section) {
        (INSTANT, None) => None,
        (INSTANT, Some(section)) => {
            let spot = source.at("multicast", section.span());
            return Err(spot.wrong("[multicast] does nothing without `start = \"multicast\"`"));
        }
        (MULTICAST, section) => {
            let usual = RawMulticast::default();
            let RawMulticast { group, ttl } = section.map_or(&usual, Spanned::get_ref);
            let is_scoped = Multicast::is_scoped(*group.ip()) && group.port() > 0 && *ttl > 0;
            if !is_scoped {
                let span = section.map_or(0..0, Spanned::span);
                let spot = source.at("multicast", span);
                let allowed = "a group of 239.0.0.0/8 with a port, and a `ttl` of 1 or more";
                return Err(spot.value(format!("`{group}`, ttl {ttl}"), allowed));
            }
            Some(Multicast {
                group: *group,
                ttl: *ttl,
            })
        }
        (other, _) => {
            let span = file.start.as_ref().map_or(0..0, Spanned::span);
            let allowed = format!("`{INSTANT}` or `{MULTICAST}`");
            return Err(source
                .at("start", span)
                .value(format!("`{other}`"), allowed));
        }
    };
    let skew_max = file.skew_max.map(|Length(most)| most);
    Ok(InStep {
        skew_max: skew_max.filter(|most| *most > Nanos(0)),
        multicast,
    })
}

fn launch(source: &Source<'_>, file: &RawFleet) -> Result<Launch, ReadError> {
    let word = file.launch.as_ref().map_or("agent", |word| word.get_ref());
    let (ssh, slurm, kubernetes) = (&file.ssh, &file.slurm, &file.kubernetes);
    let sections = [
        ("ssh", ssh.is_some()),
        ("slurm", slurm.is_some()),
        ("kubernetes", kubernetes.is_some()),
    ];
    if let Some((other, _)) = sections
        .iter()
        .find(|(name, is_there)| *is_there && *name != word)
    {
        let span = source
            .text
            .find(&format!("[{other}"))
            .map_or(0..0, |at| at..at);
        let message = format!("[{other}] does nothing with `launch = \"{word}\"`");
        return Err(source.at(*other, span).wrong(&message));
    }
    if let Some(token) = file.token_file.as_ref().filter(|_| word != "agent") {
        let message = format!("`token_file` does nothing with `launch = \"{word}\"`");
        return Err(source.at("token_file", token.span()).wrong(&message));
    }
    Ok(match word {
        "agent" => Launch::Agent,
        "ssh" => Launch::Ssh(ssh.clone().unwrap_or_default()),
        "slurm" => {
            let slurm = slurm.clone().unwrap_or_default();
            if let Some(nodes) = slurm.nodes {
                let spot = source.at(
                    "slurm.nodes",
                    source.span_in("[slurm]", "nodes").unwrap_or(0..0),
                );
                spot.within(nodes as usize, 1, FLEET_HOSTS_MAX)?;
            }
            Launch::Slurm(slurm)
        }
        "kubernetes" => {
            let kubernetes = kubernetes.clone().unwrap_or_default();
            if kubernetes.image.is_none() {
                let span = file.launch.as_ref().map_or(0..0, Spanned::span);
                let spot = source.at("launch", span);
                return Err(spot.wrong("it needs `image` in [kubernetes]: one with the program"));
            }
            if !kubernetes.node_selector.is_empty() && !file.host.is_empty() {
                let span = source.text.find("node_selector").map_or(0..0, |at| at..at);
                let spot = source.at("kubernetes.node_selector", span);
                let message = "`node_selector` does nothing with [[host]], each of which is a node";
                return Err(spot.wrong(message));
            }
            Launch::Kubernetes(kubernetes)
        }
        other => {
            let span = file.launch.as_ref().map_or(0..0, Spanned::span);
            let allowed = format!("one of `{}`", LAUNCHERS.join("`, `"));
            return Err(source
                .at("launch", span)
                .value(format!("`{other}`"), allowed));
        }
    })
}

fn host(
    source: &Source<'_>,
    raw: &RawHost,
    name: String,
    number: &str,
) -> Result<FleetHost, ReadError> {
    let filled = |text: &str| text.replace(NAME, &name).replace(NUMBER, number);
    let mut data = Vec::new();
    if let Some(texts) = &raw.data {
        for text in texts.get_ref().all() {
            let address = filled(text);
            let parsed: Result<IpAddr, _> = address.parse();
            let spot = source.at("host.data", texts.span());
            data.push(parsed.map_err(|_| spot.value(format!("`{address}`"), "an IP address"))?);
        }
    }
    let role = match &raw.role {
        None => Role::default(),
        Some(word) => {
            let spot = source.at("host.role", word.span());
            let allowed = || format!("one of `{}`", Role::words().join("`, `"));
            let role = Role::named(word.get_ref());
            role.ok_or_else(|| spot.value(format!("`{}`", word.get_ref()), allowed()))?
        }
    };
    Ok(FleetHost {
        control: raw
            .control
            .as_ref()
            .map_or_else(|| name.clone(), |control| filled(control.get_ref())),
        data,
        role,
        groups: raw.groups.clone(),
        name: name.as_str().into(),
    })
}

/// Returns the names that `text` stands for, `n[01-16,20]` as Slurm writes them, each with its number; `most` at the most.
fn range(spot: &Spot<'_>, text: &str, most: usize) -> Result<Vec<(String, String)>, ReadError> {
    let wrong = || {
        spot.value(
            format!("`{text}`"),
            "a name as `db1` or names as `n[01-16,20]`",
        )
    };
    let is_plain = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        name.chars().all(plain)
    };
    let Some((before, rest)) = text.split_once('[') else {
        let is_name = !text.is_empty() && is_plain(text);
        return if is_name {
            Ok(vec![(text.to_owned(), String::new())])
        } else {
            Err(wrong())
        };
    };
    let (numbers, after) = rest.split_once(']').ok_or_else(wrong)?;
    if !is_plain(before) || !is_plain(after) {
        return Err(wrong());
    }
    let mut names = Vec::new();
    for part in numbers.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<usize>().ok().filter(|_| text.len() <= 9);
        let (from, to) = number(first)
            .zip(number(last))
            .filter(|(from, to)| from <= to)
            .ok_or_else(wrong)?;
        if names.len() + (to - from) >= most {
            let allowed = format!("at most {FLEET_HOSTS_MAX} hosts in all");
            return Err(spot.value(format!("`{text}`"), allowed));
        }
        let width = first.len();
        names
            .extend((from..=to).map(|at| (format!("{before}{at:0width$}{after}"), at.to_string())));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_hosts_are_as_slurm_writes_them() {
        let fleet = read_fleet(
            "format = 1\n[[host]]\nname = \"n[08-10,12]\"\ncontrol = \"{name}.mgmt:7000\"\n\
             data = [\"10.0.0.{n}\", \"10.1.0.{n}\"]\nrole = \"client\"\ngroups = [\"rack-a\"]\n\
             [[host]]\nname = \"store\"\n",
            "fleet.toml",
        )
        .unwrap();
        let names: Vec<&str> = fleet.hosts.iter().map(|host| &*host.name.0).collect();
        assert_eq!(names, ["n08", "n09", "n10", "n12", "store"]);
        let third = &fleet.hosts[2];
        assert_eq!(third.control, "n10.mgmt:7000");
        assert_eq!(
            third.data,
            [
                "10.0.0.10".parse::<IpAddr>().unwrap(),
                "10.1.0.10".parse().unwrap()
            ]
        );
        assert_eq!((third.role, fleet.hosts[4].role), (Role::Client, Role::Any));
        assert_eq!(fleet.hosts[4].control, "store");
        assert_eq!(fleet.launch, Launch::Agent);
    }

    #[test]
    fn hosts_begin_by_their_clocks_or_by_a_datagram() {
        let read = |text: &str| {
            let text = format!("format = 1\n{text}[[host]]\nname = \"a\"\n");
            read_fleet(&text, "fleet.toml").unwrap().in_step
        };
        assert_eq!(read("start = \"instant\"\n"), InStep::default());
        let usual = read("start = \"multicast\"\nskew_max = \"1ms\"\n");
        assert_eq!(usual.skew_max, Some(Nanos::from_ms(1)));
        assert!(usual.multicast.is_some_and(|to| to.ttl == 1));
        let own = read("start = \"multicast\"\n[multicast]\ngroup = \"239.1.2.3:99\"\nttl = 4\n");
        let group = "239.1.2.3:99".parse().unwrap();
        assert_eq!(own.multicast, Some(Multicast { group, ttl: 4 }));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let check = |text: &str, line: usize, said: &str| {
            let text = format!("format = 1\n{text}");
            let told = read_fleet(&text, "fleet.toml").unwrap_err().to_string();
            assert!(
                told.contains(&format!("line {line}")) && told.contains(said),
                "{told}"
            );
        };
        check("[[host]]\nname = \"n[3-1]\"\n", 3, "n[3-1]");
        check("[[host]]\nname = \"n[1-99999]\"\n", 3, "10000");
        check("[[host]]\nname = \"a b\"\n", 3, "a b");
        check("[[host]]\nname = \"a\"\ndata = \"ten\"\n", 4, "IP address");
        check("[[host]]\nname = \"a\"\nrole = \"king\"\n", 4, "client");
        check(
            "[[host]]\nname = \"a\"\n[[host]]\nname = \"a\"\n",
            1,
            "two hosts",
        );
        check("launch = \"puppet\"\n", 2, "kubernetes");
        check("start = \"shot\"\n", 2, "multicast");
        check("[multicast]\nttl = 2\n", 2, "start");
        let group =
            |group: &str| format!("start = \"multicast\"\n[multicast]\ngroup = \"{group}\"\n");
        check(&group("10.0.0.1:5202"), 3, "239");
        check(&group("224.0.0.1:5202"), 3, "239");
        check(&group("239.1.1.1"), 4, "239.1.1.1");
        check("[ssh]\nuser = \"me\"\n[[host]]\nname = \"a\"\n", 2, "ssh");
        check("[[host]]\nname = \"a\"\nnic = 1\n", 4, "nic");
        check(
            "launch = \"slurm\"\n[slurm]\ntime = \"5\"\nnodes = 0\n",
            5,
            "10000",
        );
        check(
            "launch = \"slurm\"\n[[host]]\nname = \"a\"\n[slurm]\nnodes = 2\n",
            6,
            "nodes",
        );
        check("launch = \"slurm\"\n[slurm]\nnode = 2\n", 4, "node");
        check("launch = \"slurm\"\n[slurm]\nnodes = \"2\"\n", 4, "number");
        check("launch = \"kubernetes\"\n", 2, "image");
        check(
            "launch = \"kubernetes\"\n[kubernetes]\nimage = \"a\"\nnode_selector = {rack = \"a\"}\n\
             [[host]]\nname = \"a\"\n",
            5,
            "node_selector",
        );
        check("launch = \"ssh\"\ntoken_file = \"t\"\n", 3, "token_file");
        check("", 1, "[[host]]");
        let newer = read_fleet("format = 9\n", "fleet.toml").unwrap_err();
        assert!(matches!(newer, ReadError::Format { found: 9, .. }));
    }
}
