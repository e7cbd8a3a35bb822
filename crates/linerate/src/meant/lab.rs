//! The built-in lab: what the flags and the experiments make of its hosts and links.

use anyhow::anyhow;
use linerate_lab::{HostSpec, LabSpec, LinkSpec};
use linerate_model::{BitsPerSec, Nanos};
use linerate_plan::Draft;

use crate::args::LabLinkArgs;
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

/// Returns the lab that the flags mean, with the clients that the link losses of `drafts` ask for.
///
/// A loss is a client's for good and a trial chooses its clients, so nothing about the network
/// changes while trials run.
pub(super) fn lab(args: &LabLinkArgs, drafts: &[Draft]) -> LabAsked {
    let mut spec = LabSpec::study_default(LAB_CLIENTS);
    for host in &mut spec.hosts {
        if let Some(rate) = args.lab_rate {
            host.link.rate = rate.0;
        }
        host.link.loss = args.lab_loss.unwrap_or(host.link.loss);
        host.link.delay = args.lab_delay.unwrap_or(host.link.delay);
        host.link.queues = args.lab_queues.unwrap_or(QUEUES);
    }
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
        lab_queues: None,
        lab_congestion: None,
    };

    #[test]
    fn each_loss_has_a_client_of_its_own_beside_those_of_the_flags() {
        // Chapter 6 asks for links that lose nothing, a frame in 1000 and one in 100.
        let lab = lab(&FLAGS, &linerate_plan::study());
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
}
