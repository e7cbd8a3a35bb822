//! Names, units and titles of responses.

use crate::profile::Work;
use crate::unit::Unit;
use crate::workload::Kind;

macro_rules! responses {
    ($($constant:ident $name:literal $unit:ident $title:literal;)*) => {
        /// The names of all responses; each ends in its unit.
        pub mod name {
            $(#[doc = concat!("`", $name, "`: ", $title, ".")] pub const $constant: &str = $name;)*
        }

        /// Every response with its unit and its words.
        pub const CATALOGUE: &[(&str, Unit, &str)] = &[$(($name, Unit::$unit, $title),)*];
    };
}

responses! {
    THROUGHPUT "throughput_bps" BitsPerSecond "throughput";
    THROUGHPUT_TO_SERVER "throughput_to_server_bps" BitsPerSecond "throughput to the server";
    THROUGHPUT_FROM_SERVER "throughput_from_server_bps" BitsPerSecond "throughput from the server";
    APP_RECEIVED "app_received_bps" BitsPerSecond "payload that receive calls returned";
    THROUGHPUT_SENT "throughput_sent_bps" BitsPerSecond "payload accepted from the sender";
    THROUGHPUT_INTENDED "throughput_intended_bps" BitsPerSecond "requested throughput";
    PACING "pacing_bps" BitsPerSecond "rate that TCP paces itself at, all flows together";
    FLOW_MIN "flow_throughput_min_bps" BitsPerSecond "throughput of the slowest flow";
    FLOW_MAX "flow_throughput_max_bps" BitsPerSecond "throughput of the fastest flow";
    FLOWS_IDLE "flows_idle" Count "flows that transferred nothing";
    FAIRNESS "fairness_jain" Ratio "fairness of the flows (Jain), 1 = equal shares";
    HALVES "second_half_over_first" Ratio "second half of the window over the first";
    STEADY_AFTER "steady_after_ns" Nanoseconds
        "time into the window after which the rate is steady (MSER-5), where its halves differ";
    TRANSACTIONS "transactions_per_s" PerSecond "transactions per second";
    TRANSACTIONS_TIMED "transactions_timed" Count "transactions timed";
    TRANSACTIONS_INTENDED "transactions_intended_per_s" PerSecond
        "requested transactions per second";
    CONNECTIONS "connections_per_s" PerSecond "connections made and closed per second";
    CONNECTIONS_HELD "connections_held" Count "connections held to the end";
    RTT_P01 "rtt_p01_ns" Nanoseconds "round trip, first percentile";
    RTT_P50 "rtt_p50_ns" Nanoseconds "round trip, median";
    RTT_P50_FLOW_MAX "rtt_p50_flow_max_ns" Nanoseconds "round trip, median of the flow with the highest";
    RTT_P99 "rtt_p99_ns" Nanoseconds "round trip, 99th percentile";
    RTT_P999 "rtt_p999_ns" Nanoseconds "round trip, 99.9th percentile";
    RTT_MAX "rtt_max_ns" Nanoseconds "round trip, longest";
    RTT_MEAN "rtt_mean_ns" Nanoseconds "round trip, mean";
    RESPONSIVENESS "round_trips_per_minute" Count "round trips per minute";
    SENT_LATE_P50 "sent_late_p50_ns" Nanoseconds "sent after due, median";
    SENT_LATE_P99 "sent_late_p99_ns" Nanoseconds "sent after due, 99th percentile";
    ONE_WAY "one_way_ns" Nanoseconds "half of the median round trip";
    TCP_RTT "tcp_rtt_ns" Nanoseconds "TCP's smoothed round trip under load";
    TCP_MIN_RTT "tcp_min_rtt_ns" Nanoseconds "TCP's shortest round trip";
    RTT_ABOVE_OWN "tcp_rtt_above_own_ns" Nanoseconds "TCP's smoothed round trip less each flow's shortest";
    DATA_SEGMENTS "data_segments_per_s" PerSecond "data segments per second";
    ACKS "acks_per_s" PerSecond "pure ACKs per second";
    SEGMENTS_PER_ACK "data_segments_per_ack" Count "data segments per ACK";
    PAYLOAD_PER_SEGMENT "payload_per_segment_bytes" Bytes "payload per data segment";
    ACKS_PER_TRANSACTION "acks_per_transaction" Count "pure ACKs per transaction";
    SEND_MSS "send_mss_bytes" Bytes "payload of a full-size segment";
    SEGMENTS_SENT "data_segments_sent" Count "data segments sent, retransmissions included";
    RETRANSMITTED "retransmitted_segments" Count "segments retransmitted";
    RETRANSMITTED_SHARE "retransmitted_share" Ratio "share of segments retransmitted";
    LOSS_DISPERSION "loss_dispersion" Count
        "dispersion of losses; 1 if they are independent, 0 if they are even";
    LOSS_READINGS "loss_readings" Count "readings that the dispersion of lost datagrams is of";
    LOSS_GAP_VARIATION "loss_gap_variation" Ratio "relative deviation of the gaps between losses";
    FLOW_LOSS_DISPERSION "flow_loss_dispersion" Count
        "dispersion of losses from flow to flow; 1 if chance alone decides which of them lose";
    ACKS_LOST "acks_lost_share" Ratio "share of the receiver's ACKs that did not come to the sender";
    RWND_LIMITED "rwnd_limited_share" Ratio "time limited by the receive window";
    SNDBUF_LIMITED "sndbuf_limited_share" Ratio "time limited by the send buffer";
    BUSY "busy_share" Ratio "time with data outstanding";
    CWND "cwnd_segments" Count "congestion window";
    SEND_WINDOW "send_window_bytes" Bytes "window advertised by the receiver";
    WINDOW_FILLED "window_filled_share" Ratio "share of the receive window that is in flight";
    WINDOW_CLOSED "window_closed_share" Ratio "time with a closed receive window";
    STALL_MAX "stall_max_ns" Nanoseconds "longest stall";
    MESSAGES "messages_per_s" PerSecond "messages per second";
    SEND_CALLS "send_calls_per_s" PerSecond "send calls per second";
    PAYLOAD_PER_CALL "payload_per_call_bytes" Bytes "payload per send call";
    RECEIVE_CALLS "receive_calls_per_s" PerSecond "receive calls per second";
    MESSAGES_PER_SEGMENT "messages_per_segment" Count "messages per data segment";
    DATAGRAMS_SENT_RATE "datagrams_sent_per_s" PerSecond "datagrams sent per second";
    DATAGRAMS_RECEIVED_RATE "datagrams_received_per_s" PerSecond
        "different datagrams received per second";
    DATAGRAMS_SENT "datagrams_sent" Count "datagrams sent, all phases";
    DATAGRAMS_RECEIVED "datagrams_received" Count "different datagrams received, all phases";
    LOSS_SHARE "loss_share" Ratio "share of datagrams lost";
    JITTER "jitter_ns" Nanoseconds "jitter of arriving datagrams";
    LATE "datagrams_late" Count "datagrams out of order";
    DUPLICATES "datagrams_duplicate" Count "datagrams received again";
    UNANSWERED "requests_unanswered" Count "requests without a response in time";
    LOST_SENDER_QUEUE "lost_sender_queue" Count "datagrams refused by the sender's queue";
    LOST_SENDER_QDISC "lost_sender_qdisc" Count "datagrams dropped by the sending host's qdiscs after they were taken";
    LOST_SENDER_DEVICE "lost_sender_device" Count "datagrams dropped by the sending host's devices";
    LOST_RECEIVER_DEVICE "lost_receiver_device" Count
        "datagrams dropped by the receiving host's devices";
    LOST_BACKLOG "lost_receiver_backlog" Count "datagrams dropped from the receiving host's backlog";
    LOST_RECEIVER_QDISC "lost_receiver_qdisc" Count
        "datagrams dropped by the receiving host's qdiscs on their way in";
    LOST_REASSEMBLY "lost_reassembly" Count
        "datagrams whose fragments the receiving host dropped at the limit of memory";
    LOST_RECEIVER_IP "lost_receiver_ip" Count
        "datagrams that came to the receiving host's IP and were not delivered";
    LOST_CHECKSUM "lost_checksum" Count "datagrams with wrong checksums";
    LOST_RECEIVE_BUFFER "lost_receive_buffer" Count
        "datagrams dropped because the receive buffer was full";
    LOST_NOT_LOCATED "lost_not_located" Count "datagrams lost where no counter covers it";
    CPU_BUSY "cpu_busy_cpus" Cpus "busy CPUs";
    CPU_USER "cpu_usr_cpus" Cpus "CPUs busy in user mode";
    CPU_SYSTEM "cpu_sys_cpus" Cpus "CPUs busy in the kernel";
    CPU_SOFTIRQ "cpu_softirq_cpus" Cpus "CPUs busy in softirqs";
    CPU_IRQ "cpu_irq_cpus" Cpus "CPUs busy in hardirqs";
    CPU_STEAL "cpu_steal_cpus" Cpus "CPUs taken by the hypervisor";
    CPU_MISSING "cpu_missing_share" Ratio "share of the CPUs' time that no mode accounts for";
    CPU_MISSING_SCARCE "cpu_missing_scarce_share" Ratio
        "share of the CPUs' time that no mode accounts for, on each CPU beyond what it was idle";
    CPU_PRESSURE "cpu_pressure_share" Ratio "time in which a task waited for a CPU";
    CPU_OTHERS "cpu_others_usr_cpus" Cpus "CPUs that other programs used in user mode";
    CPU_OTHERS_ALL "cpu_others_cpus" Cpus "CPUs that other programs used";
    CPU_COST "cpu_cost_cpus" Cpus "CPUs that this run's threads and interrupts took";
    CPU_PER_GBIT "cpu_per_gbit_cpus" Cpus "CPUs per Gbit/s";
    WORKER_BUSY_SHARE_MAX "worker_busy_share_max" Ratio "time that the busiest worker ran";
    WORKER_WANTED_SHARE_MAX "worker_wanted_share_max" Ratio
        "time that the busiest worker ran or waited for a CPU, spinning senders aside";
    CLIENT_WORKER_WANTED "client_worker_wanted_share_max" Ratio
        "time that a worker of a client ran or waited for a CPU, highest";
    SERVER_WORKER_WANTED "server_worker_wanted_share_max" Ratio
        "time that a worker of the server ran or waited for a CPU, highest";
    RUNQUEUE_WAIT_MAX "runqueue_wait_share_max" Ratio "time that a worker waited for a CPU";
    CLIENT_WORKERS "client_workers_cpus" Cpus "CPUs that the clients' workers ran on";
    SERVER_WORKERS "server_workers_cpus" Cpus "CPUs that the server's workers ran on";
    SERVER_SWITCHES "server_context_switches_per_s" PerSecond
        "context switches to the server's workers per second";
    CONTEXT_SWITCHES "context_switches_per_s" PerSecond "context switches to workers per second";
    HOST_SHARE "host_traffic_share" Ratio "share of the host's packets that are this run's";
    CPU_PER_KIB "cpu_per_kib_ns" Nanoseconds "CPU time per KiB";
    CPU_PER_TRANSACTION "cpu_per_transaction_ns" Nanoseconds "CPU time per transaction";
    CYCLES_PER_BYTE "cycles_per_byte" Count "cycles per byte, counted by the CPU";
    CYCLES_PER_PACKET "cycles_per_packet" Count "cycles per packet, counted by the CPU";
    GBIT_PER_GHZ "gbit_per_ghz" Count "Gbit/s per GHz, counted by the CPU";
    CYCLES_PER_BYTE_NOMINAL "cycles_per_byte_nominal" Count "cycles per byte, as CPU time × frequency";
    CYCLES_PER_PACKET_NOMINAL "cycles_per_packet_nominal" Count
        "cycles per packet, as CPU time × frequency";
    GBIT_PER_GHZ_NOMINAL "gbit_per_ghz_nominal" Count "Gbit/s per GHz, as CPU time × frequency";
    INSTRUCTIONS_PER_CYCLE "instructions_per_cycle" Ratio "instructions per cycle";
    CACHE_MISSES_PER_KIB "cache_misses_per_kib" Count "cache misses per KiB";
    SOFTIRQ_MEASURED "cpu_softirq_measured_cpus" Cpus "CPUs busy in softirqs, measured";
    NET_RX "cpu_net_rx_cpus" Cpus "CPUs busy in softirqs that receive";
    NET_TX "cpu_net_tx_cpus" Cpus "CPUs busy in softirqs that send";
    HARDIRQ_MEASURED "cpu_hardirq_measured_cpus" Cpus "CPUs busy in devices' interrupts, measured";
    CLIENT_USER "client_profile_user_share" Ratio "client CPU time in user mode";
    CLIENT_ENTRY "client_profile_entry_share" Ratio "client CPU time in system calls";
    CLIENT_COPY "client_profile_copy_share" Ratio "client CPU time in copying";
    CLIENT_TRANSPORT "client_profile_transport_share" Ratio "client CPU time in TCP and UDP";
    CLIENT_IP "client_profile_ip_share" Ratio "client CPU time in IP";
    CLIENT_DEVICE "client_profile_device_share" Ratio "client CPU time in drivers";
    CLIENT_SOFTIRQ "client_profile_softirq_share" Ratio "client CPU time in the dispatch of softirqs";
    CLIENT_LOCKS "client_profile_locks_share" Ratio "client CPU time in locks";
    CLIENT_SCHEDULER "client_profile_scheduler_share" Ratio "client CPU time in the scheduler";
    CLIENT_MEMORY "client_profile_memory_share" Ratio "client CPU time in memory management";
    CLIENT_OTHER "client_profile_other_share" Ratio "client CPU time in other places in the kernel";
    SERVER_USER "server_profile_user_share" Ratio "server CPU time in user mode";
    SERVER_ENTRY "server_profile_entry_share" Ratio "server CPU time in system calls";
    SERVER_COPY "server_profile_copy_share" Ratio "server CPU time in copying";
    SERVER_TRANSPORT "server_profile_transport_share" Ratio "server CPU time in TCP and UDP";
    SERVER_IP "server_profile_ip_share" Ratio "server CPU time in IP";
    SERVER_DEVICE "server_profile_device_share" Ratio "server CPU time in drivers";
    SERVER_SOFTIRQ "server_profile_softirq_share" Ratio "server CPU time in the dispatch of softirqs";
    SERVER_LOCKS "server_profile_locks_share" Ratio "server CPU time in locks";
    SERVER_SCHEDULER "server_profile_scheduler_share" Ratio "server CPU time in the scheduler";
    SERVER_MEMORY "server_profile_memory_share" Ratio "server CPU time in memory management";
    SERVER_OTHER "server_profile_other_share" Ratio "server CPU time in other places in the kernel";
    RX_QUEUES "rx_queues" Count "receive queues of the receiving host's device";
    RX_PACKETS "rx_queue_packets_per_s" PerSecond "packets per second over all receive queues";
    RX_QUEUE_MOST "rx_queue_most_packets_per_s" PerSecond
        "packets per second of the fullest receive queue";
    RX_QUEUE_IMBALANCE "rx_queue_imbalance" Count
        "packets of the fullest receive queue over the mean of all";
    RX_QUEUE_FLOWS_IMBALANCE "rx_queue_flows_imbalance" Count
        "flows of the receive queue with most over the mean of all";
    RX_QUEUE_CHANCE "rx_queue_imbalance_by_chance" Count
        "imbalance of receive queues under random hashing, median";
    RX_QUEUE_CHANCE_MOST "rx_queue_imbalance_by_chance_most" Count
        "imbalance of receive queues that random hashing does not exceed in 95 of 100 cases";
    RX_QUEUE_CHANCE_PACKETS "rx_queue_imbalance_by_chance_of_rates" Count
        "imbalance of receive queues that random hashing of flows of these rates does not exceed in 95 of 100 cases";
    CPU_PACKETS_MOST "cpu_most_packets_per_s" PerSecond
        "packets per second processed by the CPU with most";
    CPU_PACKETS_IMBALANCE "cpu_packets_imbalance" Count "packets of the CPU with most over the mean of all";
    CPU_INTERRUPTS_MOST "cpu_most_network_interrupts_per_s" PerSecond
        "interrupts of network devices per second of the CPU with most";
    CPU_INTERRUPTS_IMBALANCE "cpu_network_interrupts_imbalance" Count
        "interrupts of network devices of the CPU with most over the mean of all";
    CPU_INTERRUPT_SHARE_MOST "cpu_most_interrupt_share" Ratio
        "time in interrupts of the CPU with most";
    CPU_CHANCE_MOST "cpu_imbalance_by_chance_most" Count
        "imbalance of CPUs that random hashing does not exceed in 95 of 100 cases";
    DELIVERY_RATE "delivery_rate_bps" BitsPerSecond
        "delivery rate that TCP saw, median, all flows together";
    APP_LIMITED "app_limited_share" Ratio
        "share of readings of the delivery rate that the sender's application limited";
    IN_FLIGHT "in_flight_bytes" Bytes "payload in flight, mean of the flows";
    ON_ITS_WAY "on_its_way_bytes" Bytes
        "payload on its way to the receiver, mean of the flows";
    RTT_ELASTICITY "rtt_elasticity" Ratio
        "slope of the round trip on what is in flight, as logarithms, where that varies";
    UNSENT "unsent_bytes" Bytes "payload that waits unsent at the sender, mean of the flows";
    OFFERED_WINDOW "offered_window_bytes" Bytes
        "window that the receiving end offers, mean of the flows";
    UNREAD "unread_bytes" Bytes "payload that waits unread at the receiver, mean of the flows";
    UNREAD_SHARE "unread_share" Ratio "share of the receive buffer that is unread payload";
    QUEUED "queued_share" Ratio "time with a queue on the path";
    RATE_VARIATION "rate_variation" Ratio
        "deviation of the rate from reading to reading, of its mean";
    RATE_STEP "rate_step" Ratio
        "median difference between rates of consecutive readings, of their mean";
    RTT_STEP "tcp_rtt_step" Ratio
        "median difference between smoothed RTTs of consecutive readings, of their mean";
    OTHERS_SHARE "others_traffic_share" Ratio
        "share of what a device of the streams passed in their direction that was others', where it was more than 3 %";
    SHARED_BPS "shared_device_bps" BitsPerSecond
        "all that passed that device, as it counts frames";
    SHARED_VARIATION "shared_device_variation" Ratio
        "deviation of that from reading to reading, of its mean";
    SHARED_OVER_OWN "shared_over_own_variation" Ratio
        "the same deviation over that of the streams' part of it";
    SPURIOUS "spurious_segments" Count "segments retransmitted although they had arrived";
    MARKED "marked_segments" Count "segments acknowledged with the echo of a congestion mark (ECN)";
    REORDERINGS "reorderings" Count "reordering events";
    TIMEOUTS "retransmission_timeouts" Count "retransmission timeouts of the flows";
    DROPPED_QDISC "dropped_sender_qdisc" Count
        "packets dropped by the sending hosts' qdiscs";
    DROPPED_DEVICE "dropped_device" Count "packets dropped by the hosts' devices";
    DROPPED_BACKLOG "dropped_backlog" Count "packets dropped from the receiving hosts' backlog";
    DROPPED_RECEIVER_QDISC "dropped_receiver_qdisc" Count
        "packets dropped by the receiving hosts' qdiscs on their way in";
    DROPPED_RECEIVER_IP "dropped_receiver_ip" Count
        "packets that came to the receiving hosts' IP and were not delivered";
    TCP_MEMORY_PER_FLOW "tcp_memory_per_flow_bytes" Bytes "memory of TCP's buffers per flow";
    QDISC_OVERLIMITS "sender_qdisc_overlimits_per_s" PerSecond
        "times per second that the sender's qdisc held packets back for its rate";
    QDISC_BACKLOG "sender_qdisc_backlog_bytes" Bytes
        "bytes that wait in the sending hosts' qdiscs";
    DELAYED_ACKS "delayed_acks_per_s" PerSecond "ACKs sent by the delayed-ACK timer per second";
    PATH_RTT "path_rtt_ns" Nanoseconds "shortest round trip of TCP at either end";
    PATH_RTT_LOADED "path_rtt_loaded_ns" Nanoseconds
        "TCP's smoothed round trip at the end where it is shorter";
    TCP_RTT_SERVER "tcp_rtt_server_ns" Nanoseconds "TCP's smoothed round trip as the server saw it";
    RTT_CPU_WAIT "rtt_cpu_wait_ns" Nanoseconds
        "part of the mean round trip in which a worker waited for a CPU";
    RTT_WORKERS "rtt_workers_ns" Nanoseconds "part of the mean round trip in which a worker ran";
    RTT_SLOW "rtt_slow_ns" Nanoseconds
        "part of the mean round trip that slow transactions add, as long as a retransmission timeout";
    SLOW "transactions_slow" Count "transactions slower than the rest by a retransmission timeout";
    STALLED "transactions_stalled" Count "transactions slower than the path by a delayed ACK";
    DELAYED_ACKS_SENT "delayed_acks" Count "ACKs sent by the delayed-ACK timer";
    TIMERS_FIRED "tcp_timers_fired" Count "retransmission timeouts and loss probes";
    RETRANSMITTED_BOTH "retransmitted_both_segments" Count "segments retransmitted by both ends";
    LOSING "losing_share" Ratio
        "share of the time between readings in which segments of exchanges were retransmitted";
    TRANSACTIONS_VARIATION "transactions_variation" Ratio
        "deviation of the transactions from reading to reading, of their mean";
    WORKER_WAITED "worker_waited_share" Ratio
        "time that a worker waited for a CPU, highest of all workers";
    CPU_BUSY_SHARE "cpu_busy_share" Ratio "share of all CPUs' time that was busy on its host";
    CPU_STEAL_SHARE "cpu_steal_share" Ratio
        "share of all CPUs' time that the hypervisor took on its host";
    WORKER_CPUS_BUSY "worker_cpus_busy_share" Ratio
        "share of the time that the CPUs that workers ran on were busy, on its host";
    WORKER_CPU_IDLE "worker_cpu_idle_share" Ratio
        "share of the time that the CPU of the busiest worker was idle, less what ticks resolve";
    WORKER_CPU_SOFTIRQ "worker_cpu_softirq_share" Ratio
        "share of the time that the CPU of the busiest worker was in interrupts";
    OTHERS_THERE "cpu_others_there_cpus" Cpus "CPUs that other programs used on its host";
    OTHERS_THERE_USER "cpu_others_there_usr_cpus" Cpus "CPUs that other programs used in user mode on its host";
    OTHERS_THERE_USER_SHARE "cpu_others_there_usr_share" Ratio
        "share of the CPU time of its host that other programs used in user mode";
    THROTTLED_PERIODS "cgroup_throttled_periods_share" Ratio
        "share of its periods in which the control group was throttled";
    THROTTLED "cgroup_throttled_share" Ratio "time that the control group was throttled";
    QUOTA "cgroup_quota_cpus" Cpus "CPUs that the control group may use";
    LISTEN_DROPS "listen_drops" Count "connections dropped by a full listener";
}

/// A response's words and unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// Words for an axis or a column.
    pub title: &'static str,
    /// Its unit.
    pub unit: Unit,
}

/// Returns the words and the unit of the response called `name`.
///
/// An unknown name, of an experiment written for a later version, gets its unit from its suffix.
pub fn describe(name: &str) -> Description {
    match CATALOGUE.iter().find(|(known, ..)| *known == name) {
        Some(&(_, unit, title)) => Description { title, unit },
        None => Description {
            title: "response",
            unit: unit_of_suffix(name),
        },
    }
}

/// Returns the name of the response that is the share of `work` at one end.
pub fn share_name(end: &str, work: Work) -> String {
    format!("{end}_profile_{}_share", work.name())
}

/// Returns whether a kind of traffic is measured for the response called `name`.
pub fn is_headline(name: &str) -> bool {
    let mut kinds = Kind::ALL.iter();
    kinds.any(|kind| kind.about().headline == name)
}

/// Which of two values of a response is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The larger.
    More,
    /// The smaller.
    Less,
}

impl Better {
    /// Returns which value of the response called `name` is better; absent where it is neither, as of segments
    /// of an ACK.
    pub fn of(name: &str) -> Option<Self> {
        const MORE: &[&str] = &[
            name::THROUGHPUT_TO_SERVER,
            name::THROUGHPUT_FROM_SERVER,
            name::APP_RECEIVED,
            name::FLOW_MIN,
            name::FAIRNESS,
            name::DATA_SEGMENTS,
            name::MESSAGES,
            name::DATAGRAMS_RECEIVED_RATE,
        ];
        match describe(name).unit {
            _ if is_headline(name) || MORE.contains(&name) => Some(Self::More),
            // Waits and work.
            Unit::Nanoseconds | Unit::Cpus => Some(Self::Less),
            _ => None,
        }
    }

    /// Returns whether `ratio` of one over the other says that the one is better.
    pub fn is_gain(self, ratio: f64) -> bool {
        match self {
            Self::More => ratio > 1.0,
            Self::Less => ratio < 1.0,
        }
    }
}

/// Returns whether the response called `name` is a share of a whole, or the largest of several such.
pub fn is_share(name: &str) -> bool {
    name.trim_end_matches("_max").ends_with(SHARE)
}

/// What the names of shares end in.
const SHARE: &str = "_share";

fn unit_of_suffix(name: &str) -> Unit {
    const SUFFIXES: &[(&str, Unit)] = &[
        ("_bps", Unit::BitsPerSecond),
        ("_per_s", Unit::PerSecond),
        ("_ns", Unit::Nanoseconds),
        ("_bytes", Unit::Bytes),
        ("_cpus", Unit::Cpus),
        (SHARE, Unit::Ratio),
    ];
    SUFFIXES
        .iter()
        .find(|(suffix, _)| name.ends_with(suffix))
        .map_or(Unit::Count, |(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_agree_with_names() {
        for (name, unit, _) in CATALOGUE {
            let suffix = unit_of_suffix(name);
            let agrees = suffix == *unit || (suffix == Unit::Count && *unit == Unit::Ratio);
            assert!(agrees, "{name} is stored as {unit:?}");
        }
    }

    #[test]
    fn what_is_better_is_known_of_rates_and_waits_alone() {
        let check = |name, ratio, expected: Option<bool>| {
            let gains = Better::of(name).map(|better| better.is_gain(ratio));
            assert_eq!(gains, expected, "{name} × {ratio}");
        };
        check(name::THROUGHPUT, 1.2, Some(true));
        check(name::TRANSACTIONS, 0.8, Some(false));
        check(name::RTT_P50, 1.2, Some(false));
        check(name::CPU_PER_GBIT, 0.8, Some(true));
        check(name::SEGMENTS_PER_ACK, 1.2, None);
        check(name::ACKS, 0.8, None);
        check(name::RETRANSMITTED, 1.2, None);
    }

    #[test]
    fn every_share_has_words() {
        for work in Work::ALL.iter().filter(|work| **work != Work::Idle) {
            for end in ["client", "server"] {
                let name = share_name(end, *work);
                assert!(describe(&name).title.starts_with(end), "{name}");
            }
        }
    }
}
