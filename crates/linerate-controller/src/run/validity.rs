//! Whether a trial may be averaged.

use linerate_model::run::{Admission, FlowRecord, Validity};
use linerate_model::samples::Samples;
use linerate_model::setting::Settings;
use linerate_model::{HostName, Nanos};

/// Part of the window by which a host's readings may lie beside its edges.
const EDGE_SHARE_MAX: f64 = 0.1;

/// Settings that tell what became of the traffic rather than which level was in force: falling
/// short of them is a result.
const RESULTS: [&str; 2] = ["requests", "connections"];

/// Returns why the settings that a host granted spoil the trial, if they do.
///
/// A buffer that the kernel capped is not the level that the cell stands for.
pub(super) fn capped(host: &HostName, settings: &Settings) -> Option<String> {
    let setting = settings
        .iter()
        .filter(|setting| !RESULTS.contains(&setting.name.as_str()))
        .find(|setting| setting.capped_by.is_some())?;
    Some(format!(
        "{} of {} was asked for, {} granted on {host}: capped by {}",
        setting.name,
        setting.requested.as_deref().unwrap_or("?"),
        setting.granted.as_deref().unwrap_or("?"),
        setting.capped_by.as_deref().unwrap_or("?"),
    ))
}

/// Returns what to say of flows that did less than was due: requests of an open loop that were not
/// sent, connections that failed.
pub(super) fn fell_short<'a>(
    host: &HostName,
    flows: impl Iterator<Item = &'a Settings> + Clone,
) -> Vec<String> {
    let of_kind = |name: &str| {
        let mut reasons = flows
            .clone()
            .flat_map(|settings| settings.iter())
            .filter(|setting| setting.name == name)
            .filter_map(|setting| setting.capped_by.as_deref());
        let first = reasons.next()?;
        Some(match reasons.count() {
            0 => format!("host {host}, {name}: {first}"),
            others => format!("host {host}, {name}: {first}; and of {others} more flows"),
        })
    };
    RESULTS.into_iter().filter_map(of_kind).collect()
}

/// Returns why the flows spoil the trial, if they do.
pub(super) fn died(flows: &[FlowRecord]) -> Option<String> {
    let dead: Vec<_> = flows
        .iter()
        .filter(|flow| flow.ended_early.is_some())
        .collect();
    let first = dead.first()?;
    Some(format!(
        "{} of {} flow ends ended early, flow {} on {} since {}",
        dead.len(),
        flows.len(),
        first.flow.0,
        first.host,
        first.ended_early.as_deref().unwrap_or("?"),
    ))
}

/// Returns why a host's readings do not cover the window, if they do not.
///
/// Rates use the true instants of the readings, so a late one is no error by itself; but then the
/// host's window is not the one that the others measured.
pub(super) fn uncovered(host: &HostName, window: Nanos, samples: &Samples) -> Option<String> {
    let late_ns = (window.0 as f64 * EDGE_SHARE_MAX) as i64;
    for (edge_ns, edge) in [(0, "begin"), (window.0 as i64, "end")] {
        let instants = samples.instants(host);
        let reading = instants.filter(|at| *at >= edge_ns).min();
        match reading {
            None => {
                return Some(format!(
                    "host {host} has no reading at the {edge} of the window"
                ));
            }
            Some(at) if at - edge_ns > late_ns => {
                let late = Nanos((at - edge_ns) as u64);
                return Some(format!(
                    "host {host} read the {edge} of the window {late} late, more than a tenth of it"
                ));
            }
            Some(_) => {}
        }
    }
    None
}

/// Returns what to know about a trial in which a host was shared.
pub(super) fn shared(host: &HostName, admission: Admission, shared_with: u32) -> Option<String> {
    let runs = if shared_with == 1 { "run" } else { "runs" };
    (admission == Admission::Shared && shared_with > 0)
        .then(|| format!("host {host} was shared with {shared_with} other {runs}"))
}

/// Returns invalid with the first reason there is, or valid.
pub(super) fn verdict(reasons: impl IntoIterator<Item = Option<String>>) -> Validity {
    reasons
        .into_iter()
        .flatten()
        .next()
        .map_or(Validity::Valid, Validity::Invalid)
}

#[cfg(test)]
mod tests {
    use linerate_model::TrialId;
    use linerate_model::metric::Metric;
    use linerate_model::sample::{Subject, TrialSample};

    use linerate_model::workload::Setting;

    use super::*;

    fn readings(at_ms: &[i64]) -> Samples {
        at_ms
            .iter()
            .map(|at| TrialSample {
                trial: TrialId(1),
                host: "a".into(),
                subject: Subject::Host,
                metric: Metric::SnmpTcpInSegs,
                at_ns: at * 1_000_000,
                value: 1,
            })
            .collect()
    }

    #[test]
    fn windows_must_be_read_at_both_edges() {
        let check = |at_ms: &[i64], words: Option<&str>| {
            let got = uncovered(&"a".into(), Nanos::from_ms(1000), &readings(at_ms));
            match words {
                None => assert_eq!(got, None, "{at_ms:?}"),
                Some(words) => assert!(
                    got.as_deref().is_some_and(|got| got.contains(words)),
                    "{got:?}"
                ),
            }
        };
        check(&[-100, 1, 500, 1003], None);
        check(&[-100, 150, 1003], Some("begin of the window 150 ms late"));
        check(&[0, 999], Some("no reading at the end"));
        check(&[0, 1101], Some("end of the window 101 ms late"));
        check(&[], Some("no reading at the begin"));
    }

    #[test]
    fn caps_are_named() {
        let setting = Setting {
            name: "SO_RCVBUF".into(),
            requested: Some("1048576".into()),
            granted: Some("212992".into()),
            effective: None,
            capped_by: Some("net.core.rmem_max = 212992".into()),
        };
        let why = capped(&"server".into(), &vec![setting].into()).unwrap();
        assert!(
            why.contains("SO_RCVBUF") && why.contains("net.core.rmem_max = 212992"),
            "{why}"
        );
    }

    #[test]
    fn a_loop_that_falls_behind_is_a_result_and_said() {
        let requests = |missed: Option<&str>| {
            Settings::from(vec![Setting {
                name: "requests".into(),
                requested: Some("100".into()),
                granted: Some("90".into()),
                effective: Some("90".into()),
                capped_by: missed.map(str::to_owned),
            }])
        };
        let (whole, short) = (requests(None), requests(Some("10 of 100 were not sent")));
        assert_eq!(capped(&"client".into(), &short), None);
        let flows = [&whole, &short, &short];
        assert_eq!(
            fell_short(&"client".into(), flows.into_iter()),
            ["host client, requests: 10 of 100 were not sent; and of 1 more flows"]
        );
        assert!(fell_short(&"client".into(), [&whole].into_iter()).is_empty());
    }

    #[test]
    fn the_first_reason_is_given() {
        assert_eq!(verdict([None, None]), Validity::Valid);
        assert_eq!(
            verdict([None, Some("b".into()), Some("c".into())]),
            Validity::Invalid("b".into())
        );
    }
}
