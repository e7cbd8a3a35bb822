//! The rows: what is known of hosts, paths and programs, and where it is read.
//!
//! A bound stands where a number of one kind ends and another begins by what the quantity is; how far beyond it a number lies
//! is told by the reading's margin, and what that is worth by the causes. No bound was moved to make a case right.

use linerate_model::unit::Bytes;
use linerate_model::wire::INITIAL_WINDOW_SEGMENTS;

use super::reading::Reading;
use super::row::{FactRow, Of, Source};
use super::view::{MOST, View, lost};
use crate::reduce::{SEGMENT_BYTES, Values, WORKER_SATURATED_SHARE, name};

/// Nearly all of it.
const NEARLY_ALL: f64 = 0.9;
/// A part that is worth a word.
const SOME: f64 = 0.1;
/// Events that are more than chance.
const EVENTS: f64 = 3.0;
/// CPUs' worth of time that somebody who matters has.
const CPUS_SOME: f64 = 0.2;
/// How often per transaction something is that each of them waits for.
const EACH_EXCHANGE: f64 = 0.3;

macro_rules! facts {
    ($($source:ident $of:ident $id:literal $words:literal $read:expr;)*) => {
        /// All facts.
        pub const FACTS: &[FactRow] = &[$(FactRow {
            id: $id,
            words: $words,
            source: Source::$source,
            of: Of::$of,
            read: $read,
        },)*];
    };
}

/// Share of the rate that was asked for.
fn reached(view: &View<'_>) -> Option<f64> {
    let of_stream = || view.over(name::THROUGHPUT, name::THROUGHPUT_INTENDED);
    let of_exchange = || view.over(name::TRANSACTIONS, name::TRANSACTIONS_INTENDED);
    of_stream().or_else(of_exchange)
}

fn is_asked(view: &View<'_>) -> bool {
    let manner = &view.workload.manner;
    manner.rate_bps.is_some_and(|bps| bps > 0) || manner.requests_per_s.is_some()
}

/// Bytes of one message of an exchange, the longer.
fn message_bytes(view: &View<'_>) -> Option<f64> {
    let longest = view.workload.traffic.longest_exchanged();
    longest.map(|Bytes(bytes)| bytes as f64)
}

fn per_transaction(view: &View<'_>, counted: &str) -> Option<f64> {
    view.over(counted, name::TRANSACTIONS_TIMED)
}

facts! {
    Traffic Any "is-stream" "payload goes as a stream"
        |view| Reading::setting(Some(view.is_stream()));
    Traffic Any "is-exchange" "each request waits for its response"
        |view| Reading::setting(Some(view.is_exchange()));
    Traffic Any "is-datagrams" "payload goes in datagrams"
        |view| Reading::setting(Some(view.is_udp()));
    Traffic Any "connects" "each exchange makes a connection"
        |view| Reading::setting(Some(view.workload.traffic.is_placed()));
    Traffic Any "has-several-flows" "several flows go at the same time"
        |view| Reading::setting(Some(view.setup.flows > 1.0));
    Traffic Any "splits-requests" "a request goes in several small writes, and Nagle's algorithm is on"
        |view| Reading::setting(Some(
            view.workload.traffic.request_writes() > 1 && view.workload.options.nagle != Some(false),
        ));
    Traffic Any "exceeds-initial-window" "a message is longer than what a connection sends at once from its start"
        |view| Reading::quotient(message_bytes(view), (INITIAL_WINDOW_SEGMENTS * SEGMENT_BYTES) as f64);
    Traffic Any "thinks" "requests pause for each other by request"
        |view| Reading::setting(Some(view.workload.manner.think.is_some()));
    Settings Tcp "buffer-set" "the socket buffers were set"
        |view| Reading::setting(Some(view.setup.buffer_is_set));
    Settings Tcp "paces" "the congestion control paces by itself"
        |view| Reading::setting(Some(view.setup.paces));
    Settings Tcp "unscaled" "the handshake agreed on no window scaling"
        |view| Reading::setting(view.setup.scales).not();
    Settings Tcp "untuned" "the receiver's kernel does not tune its buffer"
        |view| Reading::setting(view.setup.tunes).not();
    Settings Tcp "no-sack" "the handshake agreed on no SACK"
        |view| Reading::setting(view.setup.has_sack).not();
    Settings Any "busy-polls" "workers busy-poll"
        |view| Reading::setting(Some(view.workload.manner.spins()));

    RoundTrip Tcp "queue" "the round trip is a fifth longer than its shortest"
        |view| Reading::quotient(view.trip_quotient(), 1.2);
    RoundTrip Tcp "queue-deep" "the round trip is more than twice its shortest"
        |view| Reading::quotient(view.trip_quotient(), 2.0);
    RoundTrip Tcp "queue-long" "more than 5 ms wait on the way"
        |view| Reading::quotient(view.above_ns(), 5e6);
    RoundTrip Tcp "path-is-long" "the shortest round trip is longer than a scheduler's luck"
        |view| Reading::quotient(view.setup.shortest_ns(), 5e5);
    RoundTrip Stream "queued-always" "something waits on the way most of the time"
        |view| Reading::share(view.value(name::QUEUED), MOST);
    Elasticity Stream "grows-queue" "the round trip grows with what is in flight"
        |view| Reading::share(view.value(name::RTT_ELASTICITY), 0.2);
    Elasticity Stream "only-grows-queue" "the round trip grows as much as what is in flight"
        |view| Reading::share(view.value(name::RTT_ELASTICITY), 0.8);
    Variation Stream "steady" "the rate is as steady as that of a line"
        |view| Reading::quotient(view.value(name::RATE_VARIATION), 0.03).not();
    Variation Stream "uneven" "the rate changes by a fifth and more from reading to reading"
        |view| Reading::quotient(view.value(name::RATE_VARIATION), 0.2);
    Variation Stream "line-between-changes" "between changes the rate is as steady as that of a line"
        |view| Reading::quotient(view.value(name::RATE_STEP), 0.01).not();
    Variation Stream "trip-changes-more" "the round trip changes more than the rate"
        |view| Reading::quotient(view.over(name::RTT_STEP, name::RATE_STEP), 3.0);
    Variation Exchange "exchanges-uneven" "the number of exchanges changes by a fifth and more from reading to reading"
        |view| Reading::quotient(view.value(name::TRANSACTIONS_VARIATION), 0.2);
    Link Bulk "fills-link" "the flows carry all that the link's rate and framing allow"
        |view| Reading::share(view.rate().zip(view.setup.link_bps).map(|(rate, link)| rate / link), 0.95);
    Link Bulk "leaves-link" "the link carries more than twice as much"
        |view| Reading::quotient(view.rate().zip(view.setup.link_bps).map(|(rate, link)| link / rate), 2.0);
    Others Stream "others-send" "others have a tenth of what passes the device"
        // Less than three percent are not told.
        |view| Reading::share(view.rate().map(|_| view.value(name::OTHERS_SHARE).unwrap_or(0.0)), SOME);
    Others Stream "others-fill-path" "all that passes the device is as steady as a line, and the flows' part is not"
        |view| Reading::quotient(view.value(name::SHARED_OVER_OWN), MOST).not()
            .and(Reading::quotient(view.value(name::SHARED_VARIATION), 0.03).not());

    Losses Stream "loses" "segments are lost"
        |view| Reading::count(lost(view), EVENTS);
    Losses Stream "loses-much" "one segment in a thousand is lost"
        |view| Reading::quotient(view.lost_share(), 1e-3);
    Losses Stream "loses-most" "one segment in fifty is lost"
        |view| Reading::quotient(view.lost_share(), 0.02);
    Losses Stream "loss-explains" "what is lost allows no more than about the rate that there is"
        |view| Reading::quotient(view.loss_ceiling(), 2.0).not();
    LossTimes Stream "losses-independent" "losses come as by chance"
        |view| Reading::quotient(view.value(name::LOSS_DISPERSION), 2.0).not();
    LossTimes Stream "losses-even" "losses come more evenly than by chance"
        |view| Reading::quotient(view.value(name::LOSS_DISPERSION), 0.5).not();
    LossTimes Stream "some-flows-lose" "some flows lose more than chance explains"
        |view| Reading::quotient(view.value(name::FLOW_LOSS_DISPERSION), 5.0);
    LossTimes Stream "gaps-as-by-chance" "the gaps between losses vary as by chance"
        |view| Reading::share(view.value(name::LOSS_GAP_VARIATION), 0.7);
    Reordering Stream "spurious" "most of what is retransmitted had arrived"
        |view| Reading::share(view.over(name::SPURIOUS, name::RETRANSMITTED), MOST);
    Reordering Stream "reorders" "segments arrive in another order"
        |view| Reading::count(view.value(name::REORDERINGS), EVENTS);
    Timers Stream "timeouts" "retransmission timers fire"
        |view| Reading::count(view.value(name::TIMEOUTS), EVENTS);
    Timers Exchange "timers-of-exchanges" "retransmission timers or loss probes fire for one exchange in a hundred"
        |view| Reading::quotient(per_transaction(view, name::TIMERS_FIRED), 0.01);
    Timers Exchange "listener-drops" "the listener drops connections"
        |view| Reading::count(view.value(name::LISTEN_DROPS), EVENTS);
    Marks Stream "marks" "segments come with marks of congestion"
        |view| Reading::count(view.value(name::MARKED), EVENTS);
    Drops Stream "device-drops" "devices of the hosts drop packets"
        |view| Reading::count(view.value(name::DROPPED_DEVICE), EVENTS);
    Drops Stream "backlog-drops" "the backlog of a CPU of the receiver drops packets"
        |view| Reading::count(view.value(name::DROPPED_BACKLOG), EVENTS);
    Drops Stream "receiver-drops" "the receiving host drops packets on their way in"
        |view| Reading::count(view.value(name::DROPPED_RECEIVER_QDISC), EVENTS)
            .or(Reading::count(view.value(name::DROPPED_RECEIVER_IP), EVENTS));
    Qdisc Stream "qdisc-drops" "the sender's own queue drops packets"
        |view| Reading::count(view.value(name::DROPPED_QDISC), EVENTS);
    Qdisc Stream "qdisc-shapes" "the sender's own queue holds packets back for its rate"
        |view| Reading::quotient(view.value(name::QDISC_OVERLIMITS), 10.0);
    Qdisc Stream "waits-in-qdisc" "a segment of each flow and more waits in the sender's own queue"
        |view| Reading::quotient(view.value(name::QDISC_BACKLOG), SEGMENT_BYTES as f64 * view.setup.flows);

    Window Stream "waits-for-window" "the sender waits for the receive window most of the time"
        |view| Reading::share(view.value(name::RWND_LIMITED), MOST);
    Window Stream "waits-for-window-some" "the sender waits for the receive window at times"
        |view| Reading::share(view.value(name::RWND_LIMITED), SOME);
    Window Stream "fills-window" "what is in flight fills the receive window"
        |view| Reading::share(view.value(name::WINDOW_FILLED), 0.8);
    Window Stream "window-explains" "the window in each shortest round trip is about the rate"
        |view| Reading::quotient(view.value(name::SEND_WINDOW).and_then(|window| view.ceiling(window)), 1.26).not();
    Window Stream "window-allows-more" "the window in each shortest round trip is more than twice the rate"
        |view| Reading::quotient(view.value(name::SEND_WINDOW).and_then(|window| view.ceiling(window)), 2.0);
    Window Stream "window-closed" "the window is closed"
        |view| Reading::share(view.value(name::WINDOW_CLOSED), SOME);
    Window Stream "window-is-small" "the window fits a field that is not scaled"
        |view| Reading::quotient(view.value(name::SEND_WINDOW), 65_536.0).not();
    Window Stream "window-of-another" "the window that the sender sees is smaller than the one that the receiver offers"
        |view| Reading::quotient(view.over(name::OFFERED_WINDOW, name::SEND_WINDOW), 2.0);
    Window Stream "window-at-cap" "the window has grown to what the receiver's buffer may be"
        |view| Reading::quotient(
            view.value(name::SEND_WINDOW).zip(view.setup.receive_buffer).map(|(window, cap)| window / cap),
            0.4,
        );
    Unread Stream "unread" "most of the receive buffer lies unread"
        |view| Reading::share(view.value(name::UNREAD_SHARE), MOST);
    Unread Stream "unread-some" "a tenth of the receive buffer lies unread"
        |view| Reading::share(view.value(name::UNREAD_SHARE), SOME);
    Unread Stream "reader-late" "payload lies unread for a millisecond and more"
        |view| Reading::quotient(
            view.value(name::UNREAD).zip(view.rate()).map(|(bytes, bps)| view.setup.flows * bytes * 8.0 / bps),
            1e-3,
        );
    SendBuffer Stream "waits-for-buffer" "the sender waits for its send buffer most of the time"
        |view| Reading::share(view.value(name::SNDBUF_LIMITED), MOST);
    SendBuffer Stream "waits-for-buffer-some" "the sender waits for its send buffer at times"
        |view| Reading::share(view.value(name::SNDBUF_LIMITED), SOME);
    SendBuffer Stream "fills-buffer" "what is in flight is what the send buffer holds"
        |view| Reading::quotient(view.value(name::IN_FLIGHT).zip(view.setup.send_buffer).map(|(flight, buffer)| flight / buffer), 0.7);
    SendBuffer Stream "buffer-explains" "the send buffer in each shortest round trip is about the rate"
        |view| Reading::quotient(view.setup.send_buffer.and_then(|buffer| view.ceiling(buffer)), 1.5).not();
    SendBuffer Stream "nothing-unsent" "less than a segment waits to be sent"
        |view| Reading::quotient(view.over(name::UNSENT, name::SEND_MSS), 1.0).not();
    CongestionWindow Stream "fills-congestion-window" "what is in flight fills the congestion window"
        |view| Reading::share(view.congestion_filled(), 0.8);
    CongestionWindow Stream "few-segments" "the congestion window has three segments or fewer"
        |view| Reading::quotient(view.value(name::CWND), 3.5).not();
    Busy Stream "always-busy" "data is always outstanding"
        |view| Reading::share(view.value(name::BUSY), NEARLY_ALL);
    Busy Stream "idle" "nothing is outstanding for a third of the time"
        |view| Reading::share(view.value(name::BUSY), 0.7).not();
    Busy Stream "application-limited" "the program writes less than TCP would send"
        |view| Reading::share(view.value(name::APP_LIMITED), MOST);
    Delivery Stream "pauses" "what is sent is delivered faster than the mean rate"
        |view| Reading::quotient(view.over(name::DELIVERY_RATE, name::THROUGHPUT), 1.3);
    Delivery Stream "pauses-long" "what is sent is delivered at three times the mean rate"
        |view| Reading::quotient(view.over(name::DELIVERY_RATE, name::THROUGHPUT), 3.0);
    Delivery Any "stalls" "nothing comes for a tenth of a second"
        |view| Reading::quotient(view.value(name::STALL_MAX), 1e8);
    Asked Any "rate-asked" "a rate was asked for"
        |view| Reading::setting(Some(is_asked(view)));
    Asked Any "reaches-asked" "the rate, or most of the time, is as requested"
        |view| if let Some(pause) = view.workload.manner.think {
            Reading::share(view.value(name::RTT_MEAN).map(|mean| pause.0 as f64 / (pause.0 as f64 + mean)), MOST)
        } else if is_asked(view) {
            Reading::share(reached(view), 0.97)
        } else {
            Reading::setting(Some(false))
        };
    Asked Any "paced-by-socket" "the kernel was asked to pace the sockets"
        |view| Reading::setting(Some(view.setup.is_paced));
    Pacing Stream "at-pacing-rate" "the rate is the one that TCP paces at"
        |view| Reading::quotient(view.over(name::PACING, name::THROUGHPUT), 1.15).not();
    Halves Stream "grows" "the second half of the window carries more"
        |view| Reading::quotient(view.value(name::HALVES), 1.2);
    Halves Stream "collapses" "the second half of the window carries less than half"
        |view| Reading::quotient(view.value(name::HALVES), MOST).not();

    Workers Any "worker-saturated" "a worker runs all the time"
        |view| Reading::share(view.value(name::WORKER_BUSY_SHARE_MAX), WORKER_SATURATED_SHARE);
    Workers Any "worker-runs" "a worker runs most of the time"
        |view| Reading::share(view.value(name::WORKER_BUSY_SHARE_MAX), 0.7);
    Workers Any "worker-wants" "a worker runs or waits for a CPU nearly always"
        |view| Reading::share(view.value(name::WORKER_WANTED_SHARE_MAX), 0.85);
    Workers Any "workers-rest" "workers want no CPU most of the time"
        |view| Reading::share(view.value(name::WORKER_WANTED_SHARE_MAX), MOST).not();
    Waiting Any "worker-waits" "a worker waits for a CPU a quarter of the time"
        |view| Reading::share(view.value(name::WORKER_WAITED), 0.25);
    Waiting Any "worker-waits-some" "a worker waits for a CPU a tenth of the time"
        |view| Reading::share(view.value(name::WORKER_WAITED), SOME);
    Waiting Any "starved" "a worker waits for a CPU twice as long as it runs"
        |view| Reading::quotient(
            view.value(name::WORKER_WAITED).zip(view.value(name::WORKER_WANTED_SHARE_MAX))
                .map(|(waited, wanted)| waited / (wanted - waited).max(0.01)),
            2.0,
        ).and(Reading::share(view.value(name::WORKER_WAITED), 0.25));
    Waiting Any "pressure" "tasks wait for a CPU most of the time"
        |view| Reading::share(view.value(name::CPU_PRESSURE), MOST);
    OtherPrograms Any "others-run" "other programs have a fifth of a CPU"
        |view| Reading::quotient(view.value(name::OTHERS_THERE), CPUS_SOME);
    OtherPrograms Any "others-have-cpu" "other programs have a CPU and more"
        |view| Reading::quotient(view.value(name::OTHERS_THERE), 1.0);
    OtherPrograms Any "others-compute" "other programs have a fifth of a CPU in user mode"
        |view| Reading::quotient(view.value(name::OTHERS_THERE_USER), CPUS_SOME);
    Cpus Any "cpus-full" "all CPUs are busy"
        |view| Reading::share(view.value(name::CPU_BUSY_SHARE), 0.95);
    Cpus Any "cpus-free" "half of the CPUs' time is idle"
        |view| Reading::share(view.value(name::CPU_BUSY_SHARE), MOST).not();
    Cpus Any "worker-cpus-full" "the CPUs that workers run on are busy"
        |view| Reading::share(view.value(name::WORKER_CPUS_BUSY), 0.95);
    Cpus Stream "worker-cpu-full" "the CPU of the busiest worker has no idle time"
        |view| Reading::share(view.value(name::WORKER_CPU_IDLE), 0.05).not();
    Cpus Stream "worker-cpu-softirqs" "the CPU of the busiest worker is in interrupts for a fifth of the time"
        |view| Reading::share(view.value(name::WORKER_CPU_SOFTIRQ), 0.2);
    Quota Any "throttled" "the control group is throttled in a tenth of its periods"
        // Where nobody throttles, nothing is counted.
        |view| Reading::share(view.value(name::THROTTLED_PERIODS), SOME);
    Steal Any "steal" "the hypervisor takes a twentieth of the CPUs' time"
        |view| Reading::share(view.value(name::CPU_STEAL_SHARE), 0.05);
    Steal Any "steal-much" "the hypervisor takes a fifth of the CPUs' time"
        |view| Reading::share(view.value(name::CPU_STEAL_SHARE), 0.2);
    Interrupts Any "interrupts-fill-cpu" "a CPU has no time but for packets"
        |view| Reading::share(view.value(name::CPU_INTERRUPT_SHARE_MOST), 0.95);
    Interrupts Any "interrupts-much" "a CPU has packets most of the time"
        |view| Reading::share(view.value(name::CPU_INTERRUPT_SHARE_MOST), MOST);

    Split Exchange "path-is-trip" "most of an exchange is TCP's shortest round trip"
        |view| Reading::share(view.path_part(), MOST);
    Split Exchange "path-is-whole-trip" "nearly all of an exchange is TCP's shortest round trip"
        |view| Reading::share(view.path_part(), NEARLY_ALL);
    Split Exchange "queue-is-trip" "most of an exchange waits in a queue"
        |view| Reading::share(view.queue_part(), MOST);
    Split Exchange "wait-is-trip" "most of an exchange waits for a CPU"
        |view| Reading::share(view.part(name::RTT_CPU_WAIT), 0.4);
    Split Exchange "work-is-trip" "most of an exchange is work at both ends"
        |view| Reading::share(view.part(name::RTT_WORKERS), MOST);
    Split Exchange "slow-is-trip" "slow exchanges make most of the mean"
        |view| Reading::share(view.part(name::RTT_SLOW), 0.4);
    Split Exchange "rest-is-trip" "nothing that is known explains most of an exchange"
        |view| Reading::share(view.rest_part(), MOST);
    Split Exchange "rest-is-long" "what nothing explains is longer than a millisecond"
        |view| Reading::quotient(view.rest_part().zip(view.value(name::RTT_MEAN)).map(|(part, mean)| part * mean), 1e6);
    DelayedAcks Exchange "acks-wait" "the delayed-ACK timer fires for every third exchange"
        |view| Reading::quotient(per_transaction(view, name::DELAYED_ACKS_SENT), EACH_EXCHANGE);
    DelayedAcks Exchange "exchanges-stall" "every third exchange is longer by a delayed ACK"
        |view| Reading::quotient(per_transaction(view, name::STALLED), EACH_EXCHANGE);
    Losses Exchange "loses-exchanges" "segments are retransmitted for one exchange in ten"
        |view| Reading::quotient(per_transaction(view, name::RETRANSMITTED_BOTH), SOME);
    Losses Exchange "loses-often" "exchanges lose segments in a quarter of the readings"
        |view| Reading::share(view.value(name::LOSING), 0.25);
    Tail Exchange "has-tail" "one exchange in a hundred is ten times longer than the median"
        |view| Reading::quotient(view.over(name::RTT_P99, name::RTT_P50), 10.0);
    Tail Exchange "mean-is-tail" "the mean is more than twice the median"
        |view| Reading::quotient(view.over(name::RTT_MEAN, name::RTT_P50), 2.0);
    Acks Stream "few-acks" "an ACK comes for more than a hundred segments"
        |view| Reading::quotient(view.value(name::SEGMENTS_PER_ACK), 100.0);
    Acks Stream "acks-lost" "one ACK in ten does not come back"
        |view| Reading::share(view.value(name::ACKS_LOST), SOME);
    Acks Stream "acks-lost-most" "most ACKs do not come back"
        |view| Reading::share(view.value(name::ACKS_LOST), MOST);
    Acks Stream "data-arrived" "little of what is in flight is on its way to the receiver"
        |view| Reading::share(view.over(name::ON_ITS_WAY, name::IN_FLIGHT), 0.3).not();

    Datagrams Datagrams "datagrams-lost" "one datagram in a hundred is lost"
        |view| Reading::quotient(view.value(name::LOSS_SHARE), 0.01);
    Datagrams Datagrams "datagrams-lost-most" "half of the datagrams are lost"
        |view| Reading::share(view.value(name::LOSS_SHARE), 0.4);
    Datagrams Datagrams "lost-in-buffer" "most of the lost datagrams did not fit the receive buffer"
        |view| Reading::share(view.lost_at(name::LOST_RECEIVE_BUFFER), MOST);
    Datagrams Datagrams "lost-on-the-way" "most of the lost datagrams were lost where no counter covers it"
        |view| Reading::share(view.lost_at(name::LOST_NOT_LOCATED), MOST);
    Datagrams Datagrams "lost-at-sender" "most of the lost datagrams were lost in the sending host"
        |view| Reading::share(view.lost_at(name::LOST_SENDER_QDISC), MOST)
            .or(Reading::share(view.lost_at(name::LOST_SENDER_DEVICE), MOST));
    Calls Stream "small-writes" "a send call carries less than a segment"
        |view| Reading::quotient(view.value(name::PAYLOAD_PER_CALL), SEGMENT_BYTES as f64).not();
    Calls Stream "small-segments" "a segment carries less than half of what it may"
        |view| Reading::quotient(view.over(name::PAYLOAD_PER_SEGMENT, name::SEND_MSS), MOST).not();
    Calls Any "sends-nothing" "nothing arrives"
        |view| view.value(if view.is_exchange() { name::TRANSACTIONS } else { name::THROUGHPUT })
            .map_or(Reading::Moot, |value| Reading::setting(Some(value == 0.0)));
    Patterns Any "nothing-comes" "nothing that was sent came, again and again"
        |view| view.pattern("nothing-comes");
    Patterns Bulk "link-is-full" "the link carries what its rate and framing allow"
        |view| view.pattern("link-is-full");
    Patterns Datagrams "datagrams-pass-a-rate" "what is lost of the datagrams is what is more than a rate"
        |view| view.pattern("datagrams-pass-a-rate");
    Patterns Datagrams "datagrams-wait" "datagrams wait in the sender's own queue"
        |view| view.pattern("datagrams-wait");
    Patterns Any "rate-is-kept" "the requested rate arrives"
        |view| view.pattern("rate-is-kept");
    Patterns Any "waits-for-timers" "exchanges wait for retransmission timers, which fired as often"
        |view| view.pattern("waits-for-timers");
    Patterns Any "nagle-waits" "exchanges in several writes wait for the delayed-ACK timer"
        |view| view.pattern("nagle-waits");
    Patterns Any "quota-throttles" "a quota throttles the control group often, and the path does not hold the rate meanwhile"
        |view| view.pattern("quota-throttles");
    Patterns Any "others-are-in-the-way" "a worker that is missed waits for a CPU that others have"
        |view| view.pattern("others-are-in-the-way");
    Patterns Any "cpus-are-full" "a worker would do more, and all CPUs that it may use are full"
        |view| view.pattern("cpus-are-full");
    Patterns Stream "one-cpu-is-full" "the CPU of a worker has no time left"
        |view| view.pattern("one-cpu-is-full");
    Patterns Any "waits-next-to-idle" "a worker waits for a CPU next to idle ones"
        |view| view.pattern("waits-next-to-idle");
    Patterns Any "worker-is-full" "a worker runs all the time, and nothing else holds the number"
        |view| view.pattern("worker-is-full");
    Patterns Stream "reader-is-behind" "the receive buffer is full of what was not read"
        |view| view.pattern("reader-is-behind");
    Patterns Stream "window-holds" "the window is full, and in each shortest round trip it is the rate"
        |view| view.pattern("window-holds");
    Patterns Stream "buffer-holds" "the send buffer is full without a queue on the way"
        |view| view.pattern("buffer-holds");
    Patterns Stream "host-drops" "a host drops segments without a queue on the way"
        |view| view.pattern("host-drops");
    Patterns Stream "path-is-full" "payload waits before the path, or its rate is that of a line"
        |view| view.pattern("path-is-full");
    Patterns Stream "writer-pauses" "the writer has nothing to send at times, and what it sends is delivered faster"
        |view| view.pattern("writer-pauses");
    Patterns Stream "losses-hold" "losses explain the rate without a queue on the way"
        |view| view.pattern("losses-hold");
    Patterns Stream "tcp-paces" "TCP's own pacing rate is the rate, and nothing else is in the way"
        |view| view.pattern("tcp-paces");
    Patterns Any "path-is-full-of-exchanges" "hardly an exchange is faster than the others, and all wait before the path"
        |view| view.pattern("path-is-full-of-exchanges");
    Patterns Any "trip-holds" "exchanges follow one another without a pause"
        |view| view.pattern("trip-holds");
    Patterns Any "answers-late" "half of an exchange is time that nothing of the network explains"
        |view| view.pattern("answers-late");
    Patterns Any "window-holds-messages" "the receive window holds a part of a message, and the sender waits for it"
        |view| view.pattern("window-holds-messages");
    Patterns Any "pause-is-kept" "the pause that was asked for is most of the time"
        |view| view.pattern("pause-is-kept");
    Patterns Any "exchanges-wait-for-cpu" "most of an exchange waits for a CPU"
        |view| view.pattern("exchanges-wait-for-cpu");
    Patterns Any "others-fill-cpus" "a worker would do more, and others have a part of CPUs that are full"
        |view| view.pattern("others-fill-cpus");
    Patterns Any "few-cpus-are-full" "the CPUs that workers were on are full next to idle ones"
        |view| view.pattern("few-cpus-are-full");
}
