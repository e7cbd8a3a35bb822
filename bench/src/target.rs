//! What linerate must reach, held against what it has.

use serde::Serialize;

use crate::rounds::{Comparison, Row};
use crate::tool::Kind;
use crate::workload::{Against, Target, Unit};

/// A target and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reached {
    /// What was asked for.
    pub target: Target,
    /// The row that it was held against, if it is a row.
    pub against: Option<String>,
    /// The ratio, or the number itself; nothing where either side has none.
    pub found: Option<f64>,
    /// Whether that is enough.
    pub reached: Option<bool>,
}

/// Holds every target against the rows.
pub fn reached(targets: &[Target], comparison: &Comparison) -> Vec<Reached> {
    let one = |target: &Target| {
        let ours = comparison.rows.iter().find(|row| row.name == target.row);
        let against = match target.against {
            Against::Absolute => None,
            Against::Row(name) => comparison.rows.iter().find(|row| row.name == name),
            Against::BestPeer => best(comparison, Kind::Peer),
            Against::Probe => comparison.rows.iter().find(|row| row.kind == Kind::Probe),
        };
        let number = |row: &Row| {
            if target.cpu {
                row.cpu()
            } else {
                row.value().map(|spread| spread.median)
            }
        };
        let ours = ours.and_then(number);
        let found = match target.against {
            Against::Absolute => ours,
            _ => ours
                .zip(against.and_then(number))
                .map(|(ours, other)| ours / other),
        };
        let less_is_better = target.cpu || comparison.unit.less_is_better();
        Reached {
            target: *target,
            against: against.map(|row| row.name.clone()),
            found,
            reached: found.map(|found| {
                if less_is_better {
                    found <= target.bound
                } else {
                    found >= target.bound
                }
            }),
        }
    };
    targets.iter().map(one).collect()
}

/// Returns the row of a kind with the best median.
pub fn best(comparison: &Comparison, kind: Kind) -> Option<&Row> {
    let rows = comparison.rows.iter().filter(|row| row.kind == kind);
    let measured = rows.filter_map(|row| Some((row.value()?.median, row)));
    let best = measured.max_by(|a, b| comparison.unit.order(a.0, b.0));
    best.map(|(_, row)| row)
}

impl Reached {
    /// Returns it as a sentence.
    pub fn sentence(&self, unit: Unit) -> String {
        let (divisor, name) = unit.scale();
        let what = if self.target.cpu { "CPU time" } else { "" };
        let bound = match self.target.against {
            Against::Absolute => format!("at most {:.0} {name}", self.target.bound / divisor),
            _ => {
                let other = self.against.as_deref().unwrap_or("a row that is not there");
                let side = if self.target.cpu {
                    "at most"
                } else {
                    "at least"
                };
                format!("{side} {:.2} × {other}", self.target.bound)
            }
        };
        let found = match (self.found, self.target.against) {
            (None, _) => "not measured".to_owned(),
            (Some(found), Against::Absolute) => format!("{:.1} {name}", found / divisor),
            (Some(found), _) => format!("{found:.2} ×"),
        };
        let verdict = match self.reached {
            None => "",
            Some(true) => ": **reached**",
            Some(false) => ": **not reached**",
        };
        let subject = [self.target.row, what].join(" ");
        format!("{}: {bound}; {found}{verdict}", subject.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::run::Run;
    use crate::workload::Contest;

    fn row(name: &str, kind: Kind, value: f64, cpu: f64) -> Row {
        Row {
            name: name.to_owned(),
            kind,
            runs: vec![Run {
                value,
                client_cpu: Some(cpu),
                server_cpu: Some(cpu),
                others_share: 0.0,
            }],
            note: None,
        }
    }

    fn comparison(workload: Contest, rows: Vec<Row>) -> Comparison {
        Comparison {
            environment: Environment::Loopback,
            workload,
            unit: workload.unit(),
            rows,
            thrown_away: 0,
            kept_busy: 0,
            targets: Vec::new(),
        }
    }

    fn verdicts(workload: Contest, rows: Vec<Row>) -> Vec<(Option<f64>, Option<bool>)> {
        let found = reached(&workload.targets(), &comparison(workload, rows));
        found.iter().map(|one| (one.found, one.reached)).collect()
    }

    #[test]
    fn ratios_of_rate_and_of_cpu() {
        let rows = vec![
            row("linerate", Kind::Ours, 60.0, 3.0),
            row("iperf3", Kind::Peer, 50.0, 2.0),
        ];
        assert_eq!(
            verdicts(Contest::Tcp1, rows),
            [
                (Some(1.2), Some(true)),
                (Some(1.5), Some(false)),
                (None, None)
            ]
        );
    }

    #[test]
    fn the_best_peer_and_the_probe() {
        let rows = |ours: f64| {
            vec![
                row("linerate", Kind::Ours, ours, 1.0),
                row("a", Kind::Peer, 50.0, 1.0),
                row("b", Kind::Peer, 100.0, 1.0),
                row("probe", Kind::Probe, 400.0, 1.0),
            ]
        };
        assert_eq!(
            verdicts(Contest::Tcp10, rows(105.0)),
            [(Some(1.05), Some(true))]
        );
        assert_eq!(
            verdicts(Contest::Rr1, rows(100.0)),
            [(Some(1.0), Some(false)), (None, None)]
        );
        let of_probe = verdicts(Contest::Rr64, rows(500.0));
        assert_eq!(of_probe[0], (Some(1.25), Some(true)));
        assert_eq!(of_probe[1], (None, None));
    }

    #[test]
    fn less_is_better_for_time_and_memory() {
        let rows = |seconds: f64| vec![row("linerate", Kind::Ours, seconds, 1.0)];
        assert_eq!(verdicts(Contest::Startup, rows(0.008))[0].1, Some(true));
        assert_eq!(verdicts(Contest::Startup, rows(0.050))[0].1, Some(false));
        let memory = rows(40.0 * 1_048_576.0);
        assert_eq!(verdicts(Contest::Memory10000, memory)[0].1, Some(true));
    }
}
