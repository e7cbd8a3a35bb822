//! What to do next about one measurement where no limiter is known, in one line: flags to repeat it with, or where
//! to look. Nothing of it was measured to help; a study's recommendations are.

use linerate_model::experiment::Effect;
use linerate_model::limiter::Limiter;
use linerate_model::workload::Workload;

use crate::causes::toggle::Toggle;

/// Returns what decides between two limiters that are left standing, and how.
pub(crate) fn separating(standing: &[Limiter], workload: &Workload) -> Option<String> {
    let &[one, other] = standing else {
        return None;
    };
    let (flags, effects) = Toggle::separating(one, other, workload)?;
    let [grows, stays] = if effects[0] == Effect::Stays {
        [(other, effects[1]), (one, effects[0])]
    } else {
        [(one, effects[0]), (other, effects[1])]
    };
    let stays = match grows.1 {
        Effect::MayGrow => "where it stays, that is open".to_owned(),
        _ => format!("where it stays, {}", stays.0.title()),
    };
    let grows = format!("where the number grows, it is {}", grows.0.title());
    Some(format!(
        "repeat with `--prove`, which changes that and more after the measurement and decides within seconds, or with `{flags}`: {}",
        [grows, stays].join("; ")
    ))
}

/// Where other groups went on beside what is not explained.
pub(crate) const WHERE_BESIDE: &str = "measure this group alone to see what limits it: what it shares a path and hosts with \
                                       takes its part of both";
/// What to try where no rule holds.
pub(crate) const WHERE_UNKNOWN: &str =
    "repeat with `--capture -o DIR`: its report shows where time goes";

/// What to try where no rule holds and the rate had not settled, or the window has few round trips.
pub(crate) const WHERE_UNSETTLED: &str = "repeat for longer (a larger `-t`), and with `--capture -o DIR`: its report shows where time goes";

/// What to try where no rule holds and packets were captured.
pub(crate) const WHERE_CAPTURED: &str =
    "open the report (report.html in `-o DIR`): what was captured shows where time goes";

/// What to try where no rule holds and CPUs were profiled.
pub(crate) const WHERE_PROFILED: &str =
    "open the report (report.html in `-o DIR`): its flame graph shows what CPU time was spent on";

/// What to try where no rule holds and others had much of the CPUs.
pub(crate) const WHERE_DISTURBED: &str =
    "repeat when both hosts are quiet: `linerate watch` shows what runs there";

/// What to try where datagrams are lost and no rule holds.
pub(crate) const WHERE_LOST: &str = "repeat with `-b` of what each flow received: loss that ends was a full queue, loss \
                                     that stays is not of rate";

/// What to try where datagrams are lost that go in fragments, as `bytes` do not.
pub(crate) fn where_cut(bytes: u64) -> String {
    format!(
        "repeat with `-l {bytes}`, one packet for each datagram: one lost fragment loses a whole datagram"
    )
}

/// What to do where an agent did not answer any more.
pub(crate) const WHERE_SILENT_HOST: &str = "find out what became of the path to that host: does it answer (`ping`)? Then its \
                                            agent hangs; if not, the path, or the host, went dark. Repeat when it does";

/// What to do where an agent was lost.
pub(crate) const WHERE_LOST_HOST: &str =
    "find out why the agent stopped, start `linerate serve` there again, and repeat";

/// What to do where no request of a trial was answered in time.
pub(crate) const WHERE_UNANSWERED: &str = "repeat for longer (`-t`) and with one request at a time (`-P 1`): where that is \
                                           answered, so many at once, or such large ones, take longer than the window";

/// What to do where flows do not share.
pub(crate) const WHERE_UNSHARED: &str = "repeat for longer (`-t`), or with fewer flows (`-P`): each needs its share \
                                         of the window";

/// What to do where flows do not share, and lose many segments: a longer window starves others of them.
pub(crate) const WHERE_STARVED: &str = "repeat with fewer flows (`-P`): the queue before the slowest hop drops so much that \
                                        some flows hardly get through; a longer queue there, or fq_codel, lets them share";

/// What to do where datagrams do not fit the receive buffer.
pub(crate) const WHERE_BUFFER_FULL: &str =
    "repeat with a larger `-w`, or a lower `-b`: the receive buffer was full";
