//! What the CPUs of both ends did, from the looks of a profile.
//!
//! Shares are of the looks that found a CPU busy: an idle one is looked at too rarely, and /proc/stat
//! knows better how much of the time that is. Several clients are put together.

use linerate_model::metric::Metric;
use linerate_model::profile::Work;
use linerate_model::response::share_name;
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::sample::Subject;

use super::Responses;
use super::raw::Raw;

/// Looks below which shares are not told: of 100, one more or less is one percent.
const LOOKS_MIN: f64 = 100.0;

pub(super) fn reduce(raw: &Raw<'_>, responses: &mut Responses) {
    for (part, end) in [(HostPart::Client, "client"), (HostPart::Server, "server")] {
        let of_part = raw.hosts.iter().filter(|host| host.part == part);
        let looks = |metric: Metric| -> f64 {
            let of_host = |host: &HostRecord| {
                let change = raw.readings.change_on(&host.name, &Subject::Host, metric);
                change.map(|change| change.amount)
            };
            of_part.clone().filter_map(of_host).sum()
        };
        let busy: Vec<(Work, f64)> = Work::ALL
            .iter()
            .filter(|work| **work != Work::Idle)
            .map(|&work| (work, looks(work.metric())))
            .collect();
        let all: f64 = busy.iter().map(|(_, looks)| looks).sum();
        if all < LOOKS_MIN {
            continue;
        }
        for (work, looks) in busy {
            responses.put(&share_name(end, work), Some(looks / all));
        }
    }
}
