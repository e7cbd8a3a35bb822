//! The catalogue of everything that is sampled.
//!
//! A metric's text name is what stored files carry; it never changes once released. Counters grow
//! from an arbitrary start and only differences mean something; gauges are values at an instant.

use serde::{Deserialize, Serialize};

use crate::unit::Unit;

/// Whether differences or values of a metric carry meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows from an arbitrary start; only differences mean something.
    Counter,
    /// A value at an instant.
    Gauge,
}

macro_rules! catalogue {
    ($($variant:ident $name:literal $kind:ident $unit:ident $help:literal;)*) => {
        /// A named, typed, unit-bearing definition of something that is sampled.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Metric {
            $(#[doc = $help] #[serde(rename = $name)] $variant,)*
        }

        impl Metric {
            /// Every metric, in catalogue order.
            pub const ALL: &'static [Metric] = &[$(Metric::$variant,)*];

            /// Returns the name that stored files carry.
            pub fn name(self) -> &'static str {
                match self { $(Metric::$variant => $name,)* }
            }

            /// Returns whether differences or values carry meaning.
            pub const fn kind(self) -> Kind {
                match self { $(Metric::$variant => Kind::$kind,)* }
            }

            /// Returns the unit of a stored value.
            pub fn unit(self) -> Unit {
                match self { $(Metric::$variant => Unit::$unit,)* }
            }

            /// Returns one sentence on what is counted and where it comes from.
            pub fn help(self) -> &'static str {
                match self { $(Metric::$variant => $help,)* }
            }
        }
    };
}

catalogue! {
    // Flow, as the engine counts it.
    AppBytesSent "app_bytes_sent" Counter Bytes "Payload that send calls accepted.";
    AppBytesReceived "app_bytes_received" Counter Bytes "Payload that receive calls returned.";
    AppCalls "app_calls" Counter Count "Send or receive calls that transferred payload.";
    AppTransactions "app_transactions" Counter Count "Responses fully received by the requester, fully sent by the responder.";
    AppMessages "app_messages" Counter Count "Messages of a stream that were sent or received whole.";
    AppLatencies "app_latencies" Counter Count "Transactions complete inside the measured window, by their latency: of `latency:all` all of them, of `latency:NANOSECONDS` those whose latency is within 1.6 % of that. Read of all together at every reading, of a bucket where it grew since the reading before.";
    AppStallMax "app_stall_max_ns" Gauge Nanoseconds "Longest wait between two receive calls that transferred payload, inside the measured window.";
    // Flow of datagrams, as the engine counts it.
    AppDatagramsSent "app_datagrams_sent" Counter Count "Datagrams sent, those included that the sender's kernel refused.";
    AppDatagramsRefused "app_datagrams_refused" Counter Count "Of the datagrams sent, those that the sender's kernel refused: its qdisc was full (ENOBUFS), or no route led to the peer.";
    AppDatagramsReceived "app_datagrams_received" Counter Count "Datagrams received, each counted although the kernel may hand over several in one buffer (UDP_GRO); duplicates included.";
    AppDatagramsMissing "app_datagrams_missing" Gauge Count "Sequence numbers up to the highest received \
                                                             that have not arrived; a late datagram lowers \
                                                             it.";
    AppDatagramsLate "app_datagrams_late" Counter Count "Datagrams received with a lower sequence number \
                                                         than an earlier one.";
    AppDatagramsDuplicate "app_datagrams_duplicate" Counter Count "Datagrams received with a sequence \
                                                                   number that had arrived before.";
    AppSocketDrops "app_socket_drops" Counter Count "Datagrams that the kernel dropped at the socket: its \
                                                     receive buffer was full, or the checksum wrong \
                                                     (SO_MEMINFO; SO_RXQ_OVFL counts the same).";
    AppJitter "app_jitter_ns" Gauge Nanoseconds "Jitter of arriving datagrams: a running mean of the difference in transit time of two (RFC 3550, 6.4.1).";
    // Flow, from TCP_INFO (include/uapi/linux/tcp.h).
    TcpRtt "tcp_rtt_ns" Gauge Nanoseconds "tcpi_rtt: smoothed round-trip time.";
    TcpRttVar "tcp_rttvar_ns" Gauge Nanoseconds "tcpi_rttvar: its mean deviation.";
    TcpMinRtt "tcp_min_rtt_ns" Gauge Nanoseconds "tcpi_min_rtt: smallest round-trip time seen.";
    TcpCwnd "tcp_cwnd_segments" Gauge Count "tcpi_snd_cwnd: congestion window.";
    TcpSndMss "tcp_snd_mss_bytes" Gauge Bytes "tcpi_snd_mss: payload of a full-size segment sent.";
    TcpRcvMss "tcp_rcv_mss_bytes" Gauge Bytes "tcpi_rcv_mss: estimate of the peer's segment size.";
    TcpPmtu "tcp_pmtu_bytes" Gauge Bytes "tcpi_pmtu: path MTU.";
    TcpSndWnd "tcp_snd_wnd_bytes" Gauge Bytes "tcpi_snd_wnd: window that the peer advertises.";
    TcpRcvWnd "tcp_rcv_wnd_bytes" Gauge Bytes "tcpi_rcv_wnd: window that this end advertises.";
    TcpRcvSpace "tcp_rcv_space_bytes" Gauge Bytes "tcpi_rcv_space: receive autotuning's estimate.";
    TcpUnacked "tcp_unacked_segments" Gauge Count "tcpi_unacked: segments in flight.";
    TcpNotSent "tcp_notsent_bytes" Gauge Bytes "tcpi_notsent_bytes: queued, not yet sent.";
    TcpPacingRate "tcp_pacing_rate_bps" Gauge BitsPerSecond "tcpi_pacing_rate, as bits per second.";
    TcpDeliveryRate "tcp_delivery_rate_bps" Gauge BitsPerSecond "tcpi_delivery_rate, as bits per second.";
    TcpBytesSent "tcp_bytes_sent" Counter Bytes "tcpi_bytes_sent: payload sent, retransmissions included.";
    TcpBytesAcked "tcp_bytes_acked" Counter Bytes "tcpi_bytes_acked: payload the peer acknowledged.";
    TcpBytesReceived "tcp_bytes_received" Counter Bytes "tcpi_bytes_received: payload received in order.";
    TcpBytesRetrans "tcp_bytes_retrans" Counter Bytes "tcpi_bytes_retrans: payload retransmitted.";
    TcpSegsOut "tcp_segs_out" Counter Count "tcpi_segs_out: all segments sent, pure ACKs included.";
    TcpSegsIn "tcp_segs_in" Counter Count "tcpi_segs_in: all segments received.";
    TcpDataSegsOut "tcp_data_segs_out" Counter Count "tcpi_data_segs_out: segments sent that carry payload.";
    TcpDataSegsIn "tcp_data_segs_in" Counter Count "tcpi_data_segs_in: segments received that carry payload.";
    TcpRetrans "tcp_retrans_segments" Counter Count "tcpi_total_retrans: segments retransmitted.";
    TcpDelivered "tcp_delivered_segments" Counter Count "tcpi_delivered: segments the peer acknowledged.";
    TcpDeliveredCe "tcp_delivered_ce_segments" Counter Count "tcpi_delivered_ce: segments acknowledged while the peer echoed congestion marks (ECE).";
    TcpReordSeen "tcp_reord_seen" Counter Count "tcpi_reord_seen: reordering events.";
    TcpDsackDups "tcp_dsack_dups" Counter Count "tcpi_dsack_dups: duplicate segments that the peer \
                                                 reported (D-SACK): what was retransmitted had not been \
                                                 lost.";
    TcpTimeouts "tcp_rto_count" Counter Count "tcpi_total_rto: retransmission timeouts.";
    TcpAppLimited "tcp_app_limited" Gauge Count "tcpi_delivery_rate_app_limited: 1 if the delivery rate \
                                                 was measured while the sender had nothing more to send, \
                                                 or its buffer was full.";
    TcpBusy "tcp_busy_ns" Counter Nanoseconds "tcpi_busy_time: time with data outstanding.";
    TcpRwndLimited "tcp_rwnd_limited_ns" Counter Nanoseconds "tcpi_rwnd_limited: time limited by the receive window.";
    TcpSndbufLimited "tcp_sndbuf_limited_ns" Counter Nanoseconds "tcpi_sndbuf_limited: time limited by the send buffer.";
    // CPU of the machine, /proc/stat.
    CpuUser "cpu_user_ns" Counter Nanoseconds "Time in user mode (user).";
    CpuNice "cpu_nice_ns" Counter Nanoseconds "Time in user mode at low priority.";
    CpuSystem "cpu_system_ns" Counter Nanoseconds "Time in the kernel.";
    CpuIdle "cpu_idle_ns" Counter Nanoseconds "Idle time.";
    CpuIoWait "cpu_iowait_ns" Counter Nanoseconds "Idle time with disk work outstanding.";
    CpuIrq "cpu_irq_ns" Counter Nanoseconds "Time in hardirqs.";
    CpuSoftIrq "cpu_softirq_ns" Counter Nanoseconds "Time in softirqs, sampled at the tick.";
    CpuSteal "cpu_steal_ns" Counter Nanoseconds "Time the hypervisor gave to others.";
    CpuGuest "cpu_guest_ns" Counter Nanoseconds "Time running guests (also counted as user).";
    // Our own threads, /proc/self/task.
    ThreadUser "thread_user_ns" Counter Nanoseconds "User time of a thread of linerate.";
    ThreadSystem "thread_system_ns" Counter Nanoseconds "System time of a thread of linerate.";
    ThreadRun "thread_run_ns" Counter Nanoseconds "Time a thread of linerate ran (schedstat).";
    ThreadWait "thread_runqueue_wait_ns" Counter Nanoseconds "Time a runnable thread of linerate waited for a CPU (schedstat).";
    ThreadArrivals "thread_cpu_arrivals" Counter Count "Times that a thread of linerate was put on a CPU (schedstat): it was woken, or had been preempted.";
    ThreadCpu "thread_cpu" Gauge Count "The CPU a thread of linerate last ran on.";
    // Links, by netlink (IFLA_STATS64).
    LinkRxBytes "link_rx_bytes" Counter Bytes "Bytes received, Ethernet headers included.";
    LinkTxBytes "link_tx_bytes" Counter Bytes "Bytes sent, Ethernet headers included.";
    LinkRxPackets "link_rx_packets" Counter Count "Packets received (after aggregation, if any).";
    LinkTxPackets "link_tx_packets" Counter Count "Packets sent (before segmentation by the device, if any).";
    LinkRxDropped "link_rx_dropped" Counter Count "Received packets dropped, by the kernel or because the device's receive ring was full.";
    LinkTxDropped "link_tx_dropped" Counter Count "Packets dropped before sending.";
    LinkRxErrors "link_rx_errors" Counter Count "Bad packets received.";
    LinkTxErrors "link_tx_errors" Counter Count "Packets that could not be sent.";
    // Protocol counters of the host, /proc/net/snmp and /proc/net/netstat.
    SnmpTcpInSegs "snmp_tcp_in_segs" Counter Count "Tcp: InSegs.";
    SnmpTcpOutSegs "snmp_tcp_out_segs" Counter Count "Tcp: OutSegs.";
    SnmpTcpRetransSegs "snmp_tcp_retrans_segs" Counter Count "Tcp: RetransSegs.";
    SnmpTcpInErrs "snmp_tcp_in_errs" Counter Count "Tcp: InErrs.";
    SnmpTcpOutRsts "snmp_tcp_out_rsts" Counter Count "Tcp: OutRsts.";
    SnmpUdpInDatagrams "snmp_udp_in_datagrams" Counter Count "Udp: InDatagrams, datagrams handed to sockets; this and those below over IPv4 and IPv6 together.";
    SnmpUdpOutDatagrams "snmp_udp_out_datagrams" Counter Count "Udp: OutDatagrams.";
    SnmpUdpNoPorts "snmp_udp_no_ports" Counter Count "Udp: NoPorts, datagrams for ports on which nothing listens.";
    SnmpUdpInErrors "snmp_udp_in_errors" Counter Count "Udp: InErrors, datagrams not delivered for any of the reasons below.";
    SnmpUdpRcvbufErrors "snmp_udp_rcvbuf_errors" Counter Count "Udp: RcvbufErrors, the receive buffer of \
                                                                the socket was full.";
    SnmpUdpSndbufErrors "snmp_udp_sndbuf_errors" Counter Count "Udp: SndbufErrors, datagrams that this host could not send.";
    SnmpUdpInCsumErrors "snmp_udp_in_csum_errors" Counter Count "Udp: InCsumErrors, wrong checksums.";
    SnmpIpInReceives "snmp_ip_in_receives" Counter Count "Ip: InReceives, packets that came to IP, fragments each; this and those below over IPv4 and IPv6 together.";
    SnmpIpInDelivers "snmp_ip_in_delivers" Counter Count "Ip: InDelivers, packets handed to TCP, UDP and others.";
    SnmpIpForwarded "snmp_ip_forwarded" Counter Count "Ip: ForwDatagrams, packets passed on to other hosts.";
    SnmpIpInDiscards "snmp_ip_in_discards" Counter Count "Ip: InDiscards, good packets dropped on their way in.";
    SnmpIpInHdrErrors "snmp_ip_in_hdr_errors" Counter Count "Ip: InHdrErrors, packets dropped because of their header.";
    SnmpIpInAddrErrors "snmp_ip_in_addr_errors" Counter Count "Ip: InAddrErrors, packets dropped because of their address.";
    SnmpIpOutDiscards "snmp_ip_out_discards" Counter Count "Ip: OutDiscards, good packets dropped on their way out.";
    SnmpIpOutNoRoutes "snmp_ip_out_no_routes" Counter Count "Ip: OutNoRoutes, packets dropped because no route was found.";
    SnmpIpReasmReqds "snmp_ip_reasm_reqds" Counter Count "Ip: ReasmReqds, fragments that came.";
    SnmpIpReasmOks "snmp_ip_reasm_oks" Counter Count "Ip: ReasmOKs, packets put together from fragments.";
    SnmpIpReasmFails "snmp_ip_reasm_fails" Counter Count "Ip: ReasmFails, fragments dropped at the limit of memory (net.ipv4.ipfrag_high_thresh), and packets of which a part did not come in time.";
    SnmpIpReasmTimeout "snmp_ip_reasm_timeout" Counter Count "Ip: ReasmTimeout, packets of which a part did not come in time (net.ipv4.ipfrag_time).";
    SnmpIpFragOks "snmp_ip_frag_oks" Counter Count "Ip: FragOKs, packets cut into fragments.";
    SnmpIpFragFails "snmp_ip_frag_fails" Counter Count "Ip: FragFails, packets that were too long and must not be cut.";
    SnmpIpFragCreates "snmp_ip_frag_creates" Counter Count "Ip: FragCreates, the fragments of packets that were cut.";
    SnmpIcmpInDestUnreachs "snmp_icmp_in_dest_unreachs" Counter Count "Icmp: InDestUnreachs, messages that a destination is unreachable, or a packet too long for its path.";
    SnmpIcmpOutDestUnreachs "snmp_icmp_out_dest_unreachs" Counter Count "Icmp: OutDestUnreachs, the same sent.";
    NetstatIpInNoRoutes "netstat_ip_in_no_routes" Counter Count "IpExt: InNoRoutes, packets received for which no route was found.";
    NetstatIpInTruncated "netstat_ip_in_truncated" Counter Count "IpExt: InTruncatedPkts, packets dropped because a part of them is missing.";
    NetstatSyncookiesSent "netstat_syncookies_sent" Counter Count "TcpExt: SyncookiesSent, SYNs answered with a cookie (net.ipv4.tcp_syncookies).";
    NetstatSyncookiesRecv "netstat_syncookies_recv" Counter Count "TcpExt: SyncookiesRecv, connections opened by a cookie.";
    NetstatSyncookiesFailed "netstat_syncookies_failed" Counter Count "TcpExt: SyncookiesFailed, ACKs whose cookie is wrong.";
    NetstatSackDiscard "netstat_tcp_sack_discard" Counter Count "TcpExt: TCPSACKDiscard, SACK blocks that make no sense.";
    NetstatDelayedAcks "netstat_delayed_acks" Counter Count "TcpExt: DelayedACKs, ACKs sent by the delayed-ACK timer.";
    NetstatDelayedAckLost "netstat_delayed_ack_lost" Counter Count "TcpExt: DelayedACKLost.";
    NetstatAutoCorking "netstat_auto_corking" Counter Count "TcpExt: TCPAutoCorking.";
    NetstatTcpTimeouts "netstat_tcp_timeouts" Counter Count "TcpExt: TCPTimeouts.";
    NetstatTcpLossProbes "netstat_tcp_loss_probes" Counter Count "TcpExt: TCPLossProbes.";
    NetstatTcpFastRetrans "netstat_tcp_fast_retrans" Counter Count "TcpExt: TCPFastRetrans.";
    NetstatTcpSpuriousRtos "netstat_tcp_spurious_rtos" Counter Count "TcpExt: TCPSpuriousRTOs.";
    NetstatTcpRcvCollapsed "netstat_tcp_rcv_collapsed" Counter Count "TcpExt: TCPRcvCollapsed.";
    NetstatTcpBacklogDrop "netstat_tcp_backlog_drop" Counter Count "TcpExt: TCPBacklogDrop.";
    NetstatPruneCalled "netstat_prune_called" Counter Count "TcpExt: PruneCalled, receive queues pruned for memory.";
    NetstatZeroWindowDrop "netstat_zero_window_drop" Counter Count "TcpExt: TCPZeroWindowDrop.";
    NetstatListenDrops "netstat_listen_drops" Counter Count "TcpExt: ListenDrops.";
    NetstatListenOverflows "netstat_listen_overflows" Counter Count "TcpExt: ListenOverflows, connections \
                                                                     dropped because a listener's accept \
                                                                     queue was full.";
    NetstatReqQFullDrop "netstat_req_q_full_drop" Counter Count "TcpExt: TCPReqQFullDrop, SYNs dropped \
                                                                 because too many connection requests were \
                                                                 pending.";
    NetstatReqQFullDoCookies "netstat_req_q_full_do_cookies" Counter Count "TcpExt: TCPReqQFullDoCookies, \
                                                                            SYNs answered with a cookie \
                                                                            because too many connection \
                                                                            requests were pending.";
    NetstatMemoryPressures "netstat_tcp_memory_pressures" Counter Count "TcpExt: TCPMemoryPressures, times that TCP came under memory pressure (net.ipv4.tcp_mem).";
    NetstatMemoryPressureTime "netstat_tcp_memory_pressure_ms" Counter Count "TcpExt: TCPMemoryPressuresChrono, milliseconds under memory pressure.";
    NetstatAbortOnMemory "netstat_tcp_abort_on_memory" Counter Count "TcpExt: TCPAbortOnMemory, \
                                                                      connections aborted for lack of \
                                                                      memory.";
    NetstatOfoDrop "netstat_tcp_ofo_drop" Counter Count "TcpExt: TCPOFODrop, out-of-order packets dropped \
                                                         for lack of memory.";
    NetstatRcvQDrop "netstat_tcp_rcv_q_drop" Counter Count "TcpExt: TCPRcvQDrop, packets dropped because \
                                                            the receive queue was full.";
    // Every protocol counter that moved, by the kernel's name: /proc/net/snmp, netstat and snmp6.
    ProtocolCounter "protocol_counter" Counter Count "A protocol counter of the network namespace that changed in the measured window, read at the window's edges; in the kernel's own unit. A few are values at an instant and can fall (Tcp.CurrEstab).";
    // The queues between devices and protocols, /proc/net/softnet_stat; of the whole machine.
    SoftnetDropped "softnet_dropped" Counter Count "Packets dropped because a CPU's backlog was full (net.core.netdev_max_backlog).";
    SoftnetSqueezed "softnet_time_squeezed" Counter Count "Times that NAPI ran out of budget before all packets were processed (time_squeeze; net.core.netdev_budget, netdev_budget_usecs).";
    SoftnetProcessed "softnet_processed" Counter Count "Packets that a CPU processed, before aggregation.";
    SoftnetReceivedRps "softnet_received_rps" Counter Count "Times that another CPU steered packets to this one (RPS).";
    SoftnetFlowLimit "softnet_flow_limit" Counter Count "Packets dropped because one flow filled most of a CPU's backlog (net.core.flow_limit_cpu_bitmap).";
    SoftnetBacklog "softnet_backlog_packets" Gauge Count "Packets that wait in a CPU's backlog.";
    // Queueing disciplines of network devices, by netlink (TCA_STATS2).
    QdiscTxBytes "qdisc_tx_bytes" Counter Bytes "Bytes that left the qdisc; ingress qdiscs count what \
                                                 arrived.";
    QdiscTxPackets "qdisc_tx_packets" Counter Count "Packets that left it, each as many as its segments where the device segments.";
    QdiscDrops "qdisc_drops" Counter Count "Packets that it dropped.";
    QdiscRequeues "qdisc_requeues" Counter Count "Packets that the device would not take yet and that were put back.";
    QdiscOverlimits "qdisc_overlimits" Counter Count "Times that it held packets back because its rate allowed no more.";
    QdiscBacklogBytes "qdisc_backlog_bytes" Gauge Bytes "Bytes that wait in it.";
    QdiscBacklogPackets "qdisc_backlog_packets" Gauge Count "Packets that wait in it.";
    // Time in interrupts as tracepoints measure it, from a program in the kernel; only when asked for.
    SoftIrqHi "softirq_hi_ns" Counter Nanoseconds "Time in softirqs of vector HI, from entry to exit, hardirqs left out.";
    SoftIrqTimer "softirq_timer_ns" Counter Nanoseconds "The same of vector TIMER.";
    SoftIrqNetTx "softirq_net_tx_ns" Counter Nanoseconds "The same of vector NET_TX: qdiscs and completed transmissions.";
    SoftIrqNetRx "softirq_net_rx_ns" Counter Nanoseconds "The same of vector NET_RX: packets received from devices and passed through the protocols.";
    SoftIrqBlock "softirq_block_ns" Counter Nanoseconds "The same of vector BLOCK.";
    SoftIrqPoll "softirq_irq_poll_ns" Counter Nanoseconds "The same of vector IRQ_POLL.";
    SoftIrqTasklet "softirq_tasklet_ns" Counter Nanoseconds "The same of vector TASKLET.";
    SoftIrqSched "softirq_sched_ns" Counter Nanoseconds "The same of vector SCHED.";
    SoftIrqHrTimer "softirq_hrtimer_ns" Counter Nanoseconds "The same of vector HRTIMER.";
    SoftIrqRcu "softirq_rcu_ns" Counter Nanoseconds "The same of vector RCU.";
    HardIrqHandlers "hardirq_handlers_ns" Counter Nanoseconds "Time in the handlers of devices' hardirqs; timers and calls between CPUs have none.";
    // Hardware counters of a CPU, or of a thread of linerate where the CPU's may not be read.
    PerfCycles "perf_cycles" Counter Count "Cycles that the CPU was not halted, scaled where counters were \
                                            multiplexed.";
    PerfInstructions "perf_instructions" Counter Count "Instructions completed.";
    PerfCacheMisses "perf_cache_misses" Counter Count "Misses of the last level of cache.";
    // Where CPUs were when they were looked at; only when asked for.
    ProfileUser "profile_user_samples" Counter Count "Samples of a CPU in user mode.";
    ProfileEntry "profile_entry_samples" Counter Count "… entering or leaving the kernel, or in the socket \
                                                        calls themselves.";
    ProfileCopy "profile_copy_samples" Counter Count "… copying payload between user memory and the kernel's.";
    ProfileTransport "profile_transport_samples" Counter Count "… in TCP or UDP.";
    ProfileIp "profile_ip_samples" Counter Count "… in IP, routing, filters or bridges.";
    ProfileDevice "profile_device_samples" Counter Count "… in a network driver, its queue or qdisc.";
    ProfileSoftIrq "profile_softirq_samples" Counter Count "… in the dispatch of softirqs and polling.";
    ProfileLocks "profile_locks_samples" Counter Count "… taking a lock.";
    ProfileScheduler "profile_scheduler_samples" Counter Count "… choosing, waking or switching threads, or in timers.";
    ProfileMemory "profile_memory_samples" Counter Count "… allocating, clearing or freeing memory and packets.";
    ProfileOther "profile_other_samples" Counter Count "… anywhere else in the kernel.";
    ProfileIdle "profile_idle_samples" Counter Count "… idle; too few, because an idle CPU's timer stops: \
                                                      prefer /proc/stat.";
    ProfileLost "profile_lost_samples" Counter Count "Samples lost because the buffer was full.";
    // Queues of network devices, by generic netlink (netdev qstats) or the driver's statistics.
    QueueRxPackets "queue_rx_packets" Counter Count "Packets that a receive queue received.";
    QueueRxBytes "queue_rx_bytes" Counter Bytes "Bytes of them.";
    QueueRxDrops "queue_rx_drops" Counter Count "Packets that a receive queue dropped.";
    QueueTxPackets "queue_tx_packets" Counter Count "Packets that a transmit queue sent.";
    QueueTxBytes "queue_tx_bytes" Counter Bytes "Bytes of them.";
    QueueTxDrops "queue_tx_drops" Counter Count "Packets that a transmit queue dropped.";
    // Interrupts, /proc/interrupts; of the whole machine.
    IrqCount "irq_count" Counter Count "Interrupts taken: of an interrupt of a network device on all CPUs, or of the host, all its numbered interrupts.";
    IrqNetworkCount "irq_network_count" Counter Count "Interrupts of network devices that a CPU took.";
    IrqCpuCount "irq_cpu_count" Counter Count "Interrupts of a network device that one CPU took: each pair of interrupt and CPU that changed while watched, from the last reading before it did.";
    IrqCpu "irq_cpu" Gauge Count "The CPU that took most of an interrupt since the reading before.";
    // All TCP sockets of the host (network namespace), by sock_diag; sums over the sockets that exist and existed.
    TcpHostSockets "tcp_host_sockets" Gauge Count "TCP sockets that exist, listening ones and those in TIME_WAIT left out.";
    TcpHostEstablished "tcp_host_established" Gauge Count "Of them, the connections that are established.";
    TcpHostClosed "tcp_host_closed" Counter Count "TCP sockets that ended while they were watched.";
    TcpHostDataSegsOut "tcp_host_data_segs_out" Counter Count "Segments with payload sent, retransmissions included (sum of tcpi_data_segs_out).";
    TcpHostDataSegsIn "tcp_host_data_segs_in" Counter Count "Segments with payload received (sum of tcpi_data_segs_in).";
    TcpHostAcksOut "tcp_host_acks_out" Counter Count "Segments without payload sent: pure ACKs, and each connection's SYN and FIN (tcpi_segs_out - tcpi_data_segs_out).";
    TcpHostAcksIn "tcp_host_acks_in" Counter Count "Segments without payload received (tcpi_segs_in - tcpi_data_segs_in).";
    TcpHostRetrans "tcp_host_retrans_segments" Counter Count "Segments retransmitted (sum of tcpi_total_retrans).";
    TcpHostBytesSent "tcp_host_bytes_sent" Counter Bytes "Payload sent, retransmissions included (sum of tcpi_bytes_sent).";
    TcpHostBytesReceived "tcp_host_bytes_received" Counter Bytes "Payload received in order, and 1 for the end of each stream (sum of tcpi_bytes_received).";
    TcpHostDeliveryRate "tcp_host_delivery_rate_bps" Gauge BitsPerSecond "Sum of tcpi_delivery_rate over the connections that sent payload since the reading before.";
    TcpHostBusy "tcp_host_busy_ns" Counter Nanoseconds "Time with data outstanding, summed over connections (tcpi_busy_time).";
    TcpHostRwndLimited "tcp_host_rwnd_limited_ns" Counter Nanoseconds "Of it, time limited by the receive window (tcpi_rwnd_limited).";
    TcpHostSndbufLimited "tcp_host_sndbuf_limited_ns" Counter Nanoseconds "Of it, time limited by the send buffer (tcpi_sndbuf_limited).";
    // All UDP sockets of the host (network namespace), by sock_diag.
    UdpHostSockets "udp_host_sockets" Gauge Count "UDP sockets that exist.";
    UdpHostReceiveQueue "udp_host_receive_queue_bytes" Gauge Bytes "Bytes that wait in them to be read, with the kernel's overhead.";
    UdpHostSendQueue "udp_host_send_queue_bytes" Gauge Bytes "Bytes that they sent and that have not left \
                                                              the host.";
    UdpHostDrops "udp_host_drops" Counter Count "Datagrams dropped at UDP sockets, as far as a reading saw the socket (SK_MEMINFO_DROPS).";
    // Memory: /proc/meminfo, /proc/net/sockstat, /proc/pressure; of the whole machine.
    MemoryAvailable "memory_available_bytes" Gauge Bytes "Memory that programs can have without swapping (MemAvailable).";
    MemoryTcp "memory_tcp_bytes" Gauge Bytes "Memory of all TCP sockets, which net.ipv4.tcp_mem limits.";
    MemoryUdp "memory_udp_bytes" Gauge Bytes "Memory of all UDP sockets, which net.ipv4.udp_mem limits.";
    MemoryTcpOrphans "memory_tcp_orphans" Gauge Count "Orphaned TCP connections, which no program holds \
                                                       any more.";
    MemoryTcpTimeWait "memory_tcp_time_wait" Gauge Count "TCP connections in TIME_WAIT.";
    PressureMemorySome "pressure_memory_some_ns" Counter Nanoseconds "Time in which some task waited for memory.";
    PressureMemoryFull "pressure_memory_full_ns" Counter Nanoseconds "Time in which all tasks that had work waited for memory.";
    PressureCpuSome "pressure_cpu_some_ns" Counter Nanoseconds "Time in which some task that could run waited for a CPU.";
    PressureIoSome "pressure_io_some_ns" Counter Nanoseconds "Time in which some task waited for a disk.";
    // The control group of our process that limits CPU time: cpu.stat.
    CgroupPeriods "cgroup_cpu_periods" Counter Count "Periods of the quota in which a thread of the group wanted a CPU (nr_periods).";
    CgroupThrottled "cgroup_cpu_throttled_periods" Counter Count "Of them, those in which the quota was used up (nr_throttled).";
    CgroupThrottledTime "cgroup_cpu_throttled_ns" Counter Nanoseconds "Time that the group was throttled, summed over CPUs (throttled_usec, throttled_time).";
    CgroupQuota "cgroup_cpu_quota_ns" Gauge Nanoseconds "CPU time that the group may use in a second (cpu.max, cpu.cfs_quota_us); absent without a quota.";
    // NUMA nodes, /sys/devices/system/node.
    NumaHit "numa_hit_pages" Counter Count "Pages allocated on the intended node.";
    NumaMiss "numa_miss_pages" Counter Count "Pages allocated on this node although another was intended.";
    NumaLocal "numa_local_pages" Counter Count "Pages of this node allocated by a task running on it.";
    NumaOther "numa_other_pages" Counter Count "Pages of this node allocated by a task running on another.";
    NumaFree "numa_free_bytes" Gauge Bytes "Free memory of the node.";
    // Connection tracking, /proc/sys/net/netfilter and /proc/net/stat/nf_conntrack.
    ConntrackCount "conntrack_count" Gauge Count "Connections in the table.";
    ConntrackMax "conntrack_max" Gauge Count "Connections that fit (net.netfilter.nf_conntrack_max).";
    ConntrackInsertFailed "conntrack_insert_failed" Counter Count "Connections that could not be inserted \
                                                                   into the table.";
    ConntrackDrop "conntrack_drop" Counter Count "Packets dropped because the table was full or memory was \
                                                  short.";
    ConntrackEarlyDrop "conntrack_early_drop" Counter Count "Connections evicted to make room for new ones.";
    ConntrackInvalid "conntrack_invalid" Counter Count "Packets that belong to no connection and cannot begin one.";
    // Frequency and temperature, /sys/devices/system/cpu, /sys/class/thermal and /sys/class/hwmon.
    ThermalFrequency "thermal_frequency_hz" Gauge Count "Clock frequency of the CPU, in hertz (scaling_cur_freq).";
    ThermalCoreThrottled "thermal_core_throttled" Counter Count "Times that the CPU was throttled because \
                                                                 its core was hot.";
    ThermalPackageThrottled "thermal_package_throttled" Counter Count "Times that the CPU was throttled \
                                                                       because its package was hot.";
    ThermalZone "thermal_zone_millicelsius" Gauge Count "Temperature of the CPUs' thermal zone, in thousandths of a degree Celsius.";
    ThermalSensor "thermal_sensor_millicelsius" Gauge Count "Temperature of a CPU's or a network card's sensor (hardware monitoring), in thousandths of a degree Celsius.";
}

impl Metric {
    /// The vectors of softirqs in the kernel's order (include/linux/interrupt.h).
    pub const SOFTIRQ_VECTORS: [Metric; 10] = [
        Metric::SoftIrqHi,
        Metric::SoftIrqTimer,
        Metric::SoftIrqNetTx,
        Metric::SoftIrqNetRx,
        Metric::SoftIrqBlock,
        Metric::SoftIrqPoll,
        Metric::SoftIrqTasklet,
        Metric::SoftIrqSched,
        Metric::SoftIrqHrTimer,
        Metric::SoftIrqRcu,
    ];

    /// Returns the metric that stored files call `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|metric| metric.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_lead_back() {
        for &metric in Metric::ALL {
            assert_eq!(
                Metric::from_name(metric.name()),
                Some(metric),
                "{}",
                metric.name()
            );
            assert!(metric.help().ends_with('.'), "{}", metric.name());
        }
    }
}
