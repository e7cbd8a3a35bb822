//! The built-in lab: what the flags and the experiments make of its hosts and links.

use anyhow::anyhow;
use linerate_lab::{HostSpec, LabSpec, LinkSpec, Preset, UpSpec};
use linerate_model::{BitsPerSec, Bytes, Nanos};
use linerate_plan::Draft;

use crate::args::quantity::LinkRate;
use crate::args::{LabLinkArgs, LabUpArgs};
use crate::exit::{CmdResult, Failure};

/// Clients of the built-in lab, for each loss that is asked for and beside them.
pub const LAB_CLIENTS: u32 = 5;
/// Delay of the links of clients that are there for a loss, one way, where none is asked for: the
/// clean ones pass a relay like the lossy ones, so that the loss is all that differs, and a round
/// trip is much longer than what the lab's CPUs add to it.
const LOSS_LINK_DELAY: Nanos = Nanos::from_ms(2);
/// Rate of these links. Both ends and the relay together fill two CPUs at 0.8 Gbit/s (measured on a
/// virtual machine), and then it is they who decide how many packets come together.
const LOSS_LINK_RATE: BitsPerSec = BitsPerSec(300e6);
/// Queues of the hosts of the built-in lab: several, so that there is something to spread.
const QUEUES: u32 = 4;

/// The built-in lab as meant.
#[derive(Clone)]
pub struct LabAsked {
    /// Its hosts, the server first.
    pub spec: LabSpec,
    /// The link loss that each of them is there for.
    pub losses_ppm: Vec<Option<u32>>,
    /// Congestion control of what asks for none.
    pub congestion: Option<String>,
}

/// Refuses flags of a lab's links where hosts are named; `command` is what makes a lab.
pub(super) fn check(args: &LabLinkArgs, is_lab: bool, command: &str) -> CmdResult<()> {
    let words = args.words();
    if is_lab || words.is_empty() {
        return Ok(());
    }
    let error = anyhow!(
        "{} is for the links of a lab, and does nothing with a HOST",
        words.trim()
    );
    Err(Failure::usage(error).next(format!("instead of HOST: `{command}{words}`")))
}

/// Says which lab was asked for, as it would be typed.
pub(super) fn words(preset: Preset, args: &LabLinkArgs) -> String {
    let name = match preset {
        Preset::Lan => String::new(),
        other => format!("={}", other.name()),
    };
    format!(" --lab{name}{}", args.words())
}

/// What flags say of the links of a lab, beside what they are without; `None` leaves that as it is.
#[derive(Debug, Clone, Default)]
pub struct Links {
    rate: Option<LinkRate>,
    delay: Option<Nanos>,
    jitter: Option<Nanos>,
    loss: Option<f64>,
    reorder: Option<f64>,
    duplicate: Option<f64>,
    mtu_bytes: Option<u32>,
    queues: Option<u32>,
    host_queue: Option<Bytes>,
    queue: Option<Bytes>,
    /// Of clients alone: where the server's link differed as well, a path would have the narrow way of either.
    up: UpSpec,
}

impl From<&LabLinkArgs> for Links {
    fn from(args: &LabLinkArgs) -> Self {
        Self {
            rate: args.lab_rate,
            delay: args.lab_delay,
            jitter: args.lab_jitter,
            loss: args.lab_loss,
            reorder: args.lab_reorder,
            duplicate: args.lab_duplicate,
            mtu_bytes: None,
            queues: Some(args.lab_queues.unwrap_or(QUEUES)),
            host_queue: None,
            queue: args.lab_queue,
            up: UpSpec {
                rate: args.lab_up_rate,
                delay: args.lab_up_delay,
                queue: args.lab_up_queue,
            },
        }
    }
}

impl From<&LabUpArgs> for Links {
    fn from(args: &LabUpArgs) -> Self {
        Self {
            rate: args.rate.map(|rate| LinkRate(Some(rate))),
            delay: args.delay,
            jitter: args.jitter,
            loss: args.loss,
            reorder: args.reorder,
            duplicate: args.duplicate,
            mtu_bytes: args.mtu,
            queues: args.queues,
            host_queue: args.host_queue,
            queue: args.queue,
            up: UpSpec {
                rate: args.up_rate,
                delay: args.up_delay,
                queue: args.up_queue,
            },
        }
    }
}

impl Links {
    /// Makes the links of `hosts`, of which the first is the server, what the flags say.
    pub fn apply(&self, hosts: &mut [HostSpec]) {
        for (at, host) in hosts.iter_mut().enumerate() {
            let link = &mut host.link;
            if let Some(rate) = self.rate {
                link.rate = rate.0;
                // Without a rate nothing waits.
                link.queue = link.queue.filter(|_| rate.0.is_some());
            }
            link.delay = self.delay.unwrap_or(link.delay);
            link.jitter = self.jitter.unwrap_or(link.jitter);
            link.loss = self.loss.unwrap_or(link.loss);
            link.reorder = self.reorder.unwrap_or(link.reorder);
            link.duplicate = self.duplicate.unwrap_or(link.duplicate);
            link.mtu_bytes = self.mtu_bytes.unwrap_or(link.mtu_bytes);
            link.queues = self.queues.unwrap_or(link.queues);
            link.host_queue = self.host_queue.or(link.host_queue);
            link.queue = self.queue.or(link.queue);
            if at > 0 {
                link.up = self.up.over(link.up);
            }
        }
    }
}

/// Returns the lab that the flags mean, with the clients that the link losses of `drafts` ask for.
///
/// A loss is a client's for good and a trial chooses its clients, so nothing about the network
/// changes while trials run.
pub(super) fn lab(preset: Preset, args: &LabLinkArgs, drafts: &[Draft]) -> LabAsked {
    let mut spec = LabSpec::of_preset(preset, LAB_CLIENTS);
    Links::from(args).apply(&mut spec.hosts);
    let mut losses_ppm = vec![None; spec.hosts.len()];
    let link = LinkSpec {
        rate: Some(LOSS_LINK_RATE),
        delay: args.lab_delay.unwrap_or(LOSS_LINK_DELAY),
        ..spec.hosts[0].link.clone()
    };
    for (ppm, clients) in linerate_plan::link_losses(drafts) {
        let name = if ppm == 0 { "clean" } else { "lossy" };
        for _ in 0..clients.min(LAB_CLIENTS) {
            let of_name = spec.hosts.iter().filter(|it| it.name.starts_with(name));
            spec.hosts.push(HostSpec {
                name: format!("{name}{}", 1 + of_name.count()),
                link: LinkSpec {
                    loss: f64::from(ppm) / 1e6,
                    ..link.clone()
                },
            });
            losses_ppm.push(Some(ppm));
        }
    }
    LabAsked {
        spec,
        losses_ppm,
        congestion: args.lab_congestion.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: LabLinkArgs = LabLinkArgs {
        lab_rate: None,
        lab_loss: Some(0.02),
        lab_delay: None,
        lab_jitter: None,
        lab_reorder: None,
        lab_duplicate: None,
        lab_queue: None,
        lab_up_rate: None,
        lab_up_delay: None,
        lab_up_queue: None,
        lab_queues: None,
        lab_congestion: None,
    };

    #[test]
    fn each_loss_has_a_client_of_its_own_beside_those_of_the_flags() {
        // Chapter 6 asks for links that lose nothing, a frame in 1000 and one in 100.
        let lab = lab(Preset::Lan, &FLAGS, &linerate_plan::study());
        let hosts: Vec<_> = lab.spec.hosts.iter().map(|host| &*host.name).collect();
        assert_eq!(hosts[5..], ["client5", "clean1", "lossy1", "lossy2"]);
        assert_eq!(
            lab.losses_ppm[5..],
            [None, Some(0), Some(1000), Some(10_000)]
        );
        let links = lab.spec.hosts[5..].iter().map(|host| &host.link);
        let losses: Vec<_> = links.clone().map(|link| link.loss).collect();
        assert_eq!(losses, [0.02, 0.0, 0.001, 0.01]);
        for link in links.clone().skip(1) {
            assert_eq!(
                (link.delay, link.rate),
                (LOSS_LINK_DELAY, Some(LOSS_LINK_RATE))
            );
        }
        assert!(links.clone().all(|link| link.queues == QUEUES));
    }

    #[test]
    fn a_flag_says_more_than_the_preset_and_the_rest_stays() {
        let args = LabLinkArgs {
            lab_loss: None,
            lab_up_rate: Some(BitsPerSec(1e6)),
            lab_queue: Some(Bytes(100_000)),
            ..FLAGS
        };
        let lab = lab(Preset::Bloated, &args, &[]);
        let preset = Preset::Bloated.client();
        let [server, client] = [0, 1].map(|at| lab.spec.hosts[at].link.clone());
        assert_eq!(server.up, UpSpec::default());
        assert_eq!(client.up.rate, args.lab_up_rate);
        assert_eq!(
            (server.queue, client.queue),
            (args.lab_queue, args.lab_queue)
        );
        assert_eq!((client.rate, client.delay), (preset.rate, preset.delay));
        assert_eq!(client.up.queue, preset.up.queue);
        lab.spec.check("x").expect("within the limits");
    }
}
