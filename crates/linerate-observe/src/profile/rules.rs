//! Which kind of work a function of the kernel does, by its name.
//!
//! A stack is walked from its innermost function outwards, and the first one that a rule knows
//! decides: a copy inside TCP is a copy, an unknown helper inside TCP is TCP. So the table names
//! what is specific and leaves helpers that anybody calls (`memset`, `ktime_get`, the release of
//! locks) to their callers. The release of a lock is where interrupts are switched on again, and
//! without a non-maskable interrupt everything that happened before is charged there.
//!
//! Within the table the first rule that fits decides, so that exceptions come before prefixes.

use linerate_model::profile::Work;

use super::symbols::Named;

/// The rules: beginnings of names, by kind of work. A name with `=` before it must be whole; one
/// with `~` before it may begin with `__` as well, as the inner part of a function often does.
const RULES: &[(Work, &[&str])] = &[
    (
        Work::Idle,
        &[
            "=default_idle",
            "=default_idle_call",
            "=native_safe_halt",
            "=pv_native_safe_halt",
            "=acpi_safe_halt",
            "=mwait_idle",
            "=cpu_do_idle",
            "=arch_cpu_idle",
            "=poll_idle",
            "=cpu_idle_poll",
            "=do_idle",
            "=cpu_startup_entry",
            "intel_idle",
            "acpi_idle",
            "acpi_processor_ffh_cstate",
            "cpuidle_",
            "haltpoll",
        ],
    ),
    (
        Work::Copy,
        &[
            "~copy_user",
            "_copy_from_iter",
            "_copy_to_iter",
            "copy_page_from_iter",
            "copy_page_to_iter",
            "copy_from_user",
            "copy_to_user",
            "_copy_from_user",
            "_copy_to_user",
            "__arch_copy_from_user",
            "__arch_copy_to_user",
            "raw_copy_",
            "rep_movs",
            "copyin",
            "copyout",
            "csum_and_copy",
            "csum_partial_copy",
            "skb_copy_datagram",
            "__skb_datagram_iter",
            "skb_copy_and_csum",
            "simple_copy_to_iter",
            "__check_object_size",
            "~check_heap_object",
            "memcpy_to_iter",
            "memcpy_from_iter",
        ],
    ),
    (
        Work::Locks,
        &[
            "_raw_spin_lock",
            "_raw_spin_trylock",
            "_raw_read_lock",
            "_raw_write_lock",
            "native_queued_spin_lock",
            "queued_spin_lock",
            "queued_read_lock",
            "queued_write_lock",
            "__pv_queued_spin_lock",
            "pv_wait",
            "~mutex_lock",
            "mutex_spin_on_owner",
            "osq_lock",
            "down_read",
            "down_write",
            "rwsem_",
            "rt_mutex",
            "rt_spin",
            "rt_read_lock",
            "~lock_sock",
        ],
    ),
    (
        Work::Scheduler,
        &[
            "~schedule",
            "preempt_schedule",
            "io_schedule",
            "try_to_wake_up",
            "ttwu_",
            "~wake_up",
            "default_wake_function",
            "autoremove_wake",
            "woken_wake",
            "pick_next",
            "pick_task",
            "pick_eevdf",
            "enqueue_task",
            "enqueue_entity",
            "dequeue_task",
            "dequeue_entity",
            "dequeue_entities",
            "set_next_",
            "put_prev_",
            "update_curr",
            "~update_load",
            "update_rq_clock",
            "place_entity",
            "reweight_",
            "select_task_rq",
            "select_idle",
            "sched_",
            "sugov_",
            "resched_curr",
            "wakeup_preempt",
            "check_preempt",
            "finish_task_switch",
            "__switch_to",
            "switch_mm",
            "switch_fpu",
            "prepare_to_wait",
            "prepare_to_swait",
            "finish_wait",
            "wait_woken",
            "add_wait_queue",
            "remove_wait_queue",
            "hrtimer_",
            "__hrtimer",
            "tick_",
            "timer_",
            "~run_timer",
            "call_timer_fn",
            "~mod_timer",
            "clockevents_",
            "lapic_next",
            "update_process_times",
            "load_balance",
            "newidle_balance",
            "rebalance_",
            "futex_",
            "do_futex",
            "__futex",
            "smp_call_function",
            "generic_smp_call",
            "~flush_smp_call",
            "native_smp_send",
            "~x2apic_send",
            "kvm_send_ipi",
            "__send_ipi",
            "kthread",
            "worker_thread",
            "process_one_work",
            "~queue_work",
        ],
    ),
    (
        Work::Memory,
        &[
            "kmem_cache_",
            "__kmem_cache",
            "~kmalloc",
            "~kfree",
            "___slab",
            "__slab",
            "slab_",
            "get_partial",
            "get_any_partial",
            "put_cpu_partial",
            "~alloc_skb",
            "~build_skb",
            "napi_build_skb",
            "~napi_alloc",
            "napi_skb_cache",
            "napi_consume_skb",
            "~netdev_alloc",
            "skb_release",
            "skb_free",
            "skb_attempt_defer_free",
            "skb_page_frag",
            "~skb_clone",
            "skb_copy_ubufs",
            "pskb_expand_head",
            "~consume_skb",
            "sk_page_frag",
            "~page_frag",
            "page_pool",
            "~alloc_pages",
            "~alloc_frozen",
            "get_page_from_freelist",
            "rmqueue",
            "~free_pages",
            "free_unref",
            "free_frozen",
            "free_pcppages",
            "__free_one_page",
            "~put_page",
            "folio_",
            "__folio",
            "lru_",
            "clear_page",
            "~mod_memcg",
            "memcg_",
            "__memcg",
            "mem_cgroup",
            "obj_cgroup",
            "refill_",
            "consume_stock",
            "try_charge",
            "~handle_mm_fault",
            "do_user_addr_fault",
            "exc_page_fault",
            "asm_exc_page_fault",
            "do_anonymous_page",
            "unmap_",
            "zap_",
            "~iov_iter_get_pages",
            "iov_iter_extract_pages",
            "gup_",
            "get_user_pages",
            "pin_user_pages",
        ],
    ),
    (
        Work::Transport,
        &[
            "~tcp_",
            "tcp4_",
            "tcp6_",
            "~mptcp_",
            "~udp_",
            "~udp4_",
            "~udp6_",
            "udpv6_",
            "bbr_",
            "cubictcp_",
            "bictcp_",
            "dctcp_",
            "inet_csk",
            "inet_sendmsg",
            "inet_recvmsg",
            "inet6_sendmsg",
            "inet6_recvmsg",
            "inet_send_prepare",
            "~inet_lookup",
            "~inet6_lookup",
            "inet_ehash",
            "~sk_",
            "~release_sock",
            "sock_def_",
            "~sock_wfree",
            "sock_rfree",
            "sock_efree",
            "~sock_queue_rcv",
            "sock_alloc_send",
            "unix_",
            "skb_splice_from_iter",
            "__zerocopy_sg",
            "skb_zerocopy",
            "msg_zerocopy",
        ],
    ),
    (
        Work::Ip,
        &[
            "~ip_", "ip4_", "~ip6_", "ipv4_", "~ipv6_", "inet_", "inet6_", "icmp", "fib_", "fib4_",
            "fib6_", "__fib", "dst_", "rt_", "rt6_", "neigh_", "__neigh", "arp_", "~nf_", "nft_",
            "ipt_", "iptable_", "xt_", "~br_", "xfrm_",
        ],
    ),
    (
        Work::Device,
        &[
            "~dev_queue_xmit",
            "__dev_xmit_skb",
            "dev_hard_start_xmit",
            "dev_direct_xmit",
            "dev_loopback_xmit",
            "~dev_forward_skb",
            "validate_xmit",
            "netdev_core_pick",
            "netdev_pick",
            "netif_skb_features",
            "skb_mac_gso",
            "skb_segment",
            "~skb_gso",
            "skb_checksum_help",
            "qdisc_",
            "__qdisc",
            "sch_",
            "pfifo_",
            "bfifo_",
            "tbf_",
            "fq_",
            "htb_",
            "mq_",
            "net_tx_action",
            "enqueue_to_backlog",
            "~netif_rx",
            "loopback_xmit",
            "always_on",
            "veth_",
            "virtnet_",
            "virtqueue_",
            "virtio_",
            "vring_",
            "vp_notify",
            "vp_modern",
            "start_xmit",
            "tun_",
            "tap_",
            "bond_",
            "vlan_",
            "macvlan_",
            "ipvlan_",
            "mlx4_",
            "mlx5",
            "ixgbe_",
            "ixgbevf_",
            "i40e_",
            "iavf_",
            "ice_",
            "igb_",
            "igc_",
            "e1000",
            "bnxt_",
            "bnx2x_",
            "ena_",
            "gve_",
            "mana_",
            "netvsc_",
            "vmxnet3_",
            "xennet_",
            "r8169_",
            "rtl_",
            "rtl8169_",
            "tg3_",
            "ionic_",
            "cxgb4_",
            "qede_",
            "nfp_",
            "stmmac_",
            "~xdp_",
            "dma_",
            "iommu_",
            "swiotlb_",
            "eth_type_trans",
            "packet_",
            "tpacket_",
        ],
    ),
    (
        Work::SoftIrq,
        &[
            "handle_softirqs",
            "~do_softirq",
            "__local_bh_enable",
            "run_ksoftirqd",
            "smpboot_thread_fn",
            "net_rx_action",
            "~napi_",
            "process_backlog",
            "~netif_receive_skb",
            "gro_",
            "dev_gro_receive",
            "skb_gro",
            "tasklet_",
            "~rcu_",
            "~irq_exit",
            "irq_enter",
            "~common_interrupt",
            "asm_common_interrupt",
            "asm_sysvec",
            "sysvec_",
            "__sysvec",
            "~handle_irq",
            "handle_edge_irq",
            "handle_fasteoi",
            "generic_handle_irq",
            "el1_interrupt",
            "el1h_64_irq",
        ],
    ),
    (
        Work::Entry,
        &[
            "entry_SYSCALL",
            "entry_SYSRETQ",
            "do_syscall",
            "syscall_",
            "x64_sys_call",
            "__x64_sys",
            "__arm64_sys",
            "el0_",
            "el0t_",
            "invoke_syscall",
            "~sys_",
            "___sys_",
            "____sys_",
            "ksys_",
            "vfs_",
            "new_sync_",
            "rw_verify_area",
            "~sock_sendmsg",
            "~sock_recvmsg",
            "sock_read_iter",
            "sock_write_iter",
            "sock_splice",
            "sock_poll",
            "sockfd_lookup",
            "~import_",
            "~copy_msghdr",
            "move_addr_to",
            "put_cmsg",
            "~fdget",
            "__fget",
            "fput",
            "security_",
            "apparmor_",
            "aa_",
            "selinux_",
            "do_epoll",
            "~ep_",
            "epoll_",
            "do_poll",
            "do_sys_poll",
            "do_splice",
            "splice_",
            "__splice",
            "pipe_",
            "sendfile",
            "do_sendfile",
            "shmem_file",
            "~io_",
            "audit_",
            "__audit",
            "__seccomp",
            "exit_to_user",
            "irqentry_exit",
        ],
    ),
];

/// Returns what `function` does, if a rule knows; `drivers` are the modules of network devices.
pub(super) fn work_of(function: Named<'_>, drivers: &[String]) -> Option<Work> {
    let name = function.name;
    if name.contains("_unlock") {
        return None;
    }
    // What compilers append: `.constprop.0`, `.isra.0`, `.part.0`, `.cold`.
    let plain = name.split('.').next().unwrap_or(name);
    let inner = plain.strip_prefix("__").unwrap_or(plain);
    let fits = |pattern: &&str| match pattern.split_at(1) {
        ("=", whole) => plain == whole,
        ("~", start) => plain.starts_with(start) || inner.starts_with(start),
        _ => plain.starts_with(*pattern),
    };
    let named = RULES.iter().find(|(_, patterns)| patterns.iter().any(fits));
    let of_driver = || {
        let module = function.module?;
        drivers
            .iter()
            .any(|driver| driver == module)
            .then_some(Work::Device)
    };
    named.map(|(work, _)| *work).or_else(of_driver)
}

/// Returns the work of a stack inside the kernel, from what rules know of its functions, the
/// innermost first.
pub(super) fn work_of_stack(functions: impl IntoIterator<Item = Option<Work>>) -> Work {
    let mut known = functions.into_iter().flatten();
    known.next().unwrap_or(Work::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stack: &[&str], expected: Work) {
        let function = |text: &&str| {
            let (name, module) = match text.split_once(" [") {
                Some((name, module)) => (name, module.strip_suffix(']')),
                None => (*text, None),
            };
            work_of(Named { name, module }, &["mydriver".to_owned()])
        };
        // Written from the outside in, as stacks are read.
        let work = work_of_stack(stack.iter().rev().map(function));
        assert_eq!(work, expected, "{stack:?}");
    }

    #[test]
    fn the_innermost_function_that_a_rule_knows_decides() {
        let send: &[&str] = &[
            "entry_SYSCALL_64_after_hwframe",
            "do_syscall_64",
            "__x64_sys_sendto",
            "__sys_sendto",
        ];
        let below = |more: &[&'static str]| [send, more].concat();
        check(send, Work::Entry);
        check(
            &below(&["tcp_sendmsg", "tcp_sendmsg_locked"]),
            Work::Transport,
        );
        check(
            &below(&[
                "tcp_sendmsg_locked",
                "skb_do_copy_data_nocache",
                "_copy_from_iter",
            ]),
            Work::Copy,
        );
        check(
            &below(&[
                "tcp_sendmsg_locked",
                "_copy_from_iter",
                "rep_movs_alternative",
            ]),
            Work::Copy,
        );
        // A helper that anybody calls is its caller's work.
        check(&below(&["tcp_sendmsg_locked", "memset"]), Work::Transport);
        check(&below(&["udp_sendmsg", "ip_make_skb", "memcpy"]), Work::Ip);
        check(
            &below(&[
                "tcp_sendmsg_locked",
                "tcp_stream_alloc_skb",
                "__alloc_skb",
                "memset",
            ]),
            Work::Memory,
        );
        check(
            &below(&["__tcp_transmit_skb", "__ip_queue_xmit", "ip_output"]),
            Work::Ip,
        );
        check(&below(&["ip_output", "__dev_queue_xmit"]), Work::Device);
        check(
            &below(&["dev_hard_start_xmit", "veth_xmit [veth]"]),
            Work::Device,
        );
        check(&below(&["odd_name_xmit [mydriver]"]), Work::Device);
        check(&below(&["odd_name [another]"]), Work::Entry);
    }

    #[test]
    fn locks_are_taken_and_their_release_is_the_callers() {
        check(
            &["tcp_sendmsg", "lock_sock_nested", "_raw_spin_lock_bh"],
            Work::Locks,
        );
        check(
            &["udp_sendmsg", "native_queued_spin_lock_slowpath"],
            Work::Locks,
        );
        check(
            &["try_to_wake_up", "_raw_spin_unlock_irqrestore"],
            Work::Scheduler,
        );
        check(&["tcp_recvmsg", "_raw_spin_unlock_bh"], Work::Transport);
        check(&["dequeue", "rt_mutex_lock"], Work::Locks);
        check(&["rt_cache_valid"], Work::Ip);
    }

    #[test]
    fn soft_interrupts_and_idle_are_told_from_what_is_done_in_them() {
        let softirq = [
            "do_idle",
            "asm_common_interrupt",
            "irq_exit_rcu",
            "handle_softirqs",
        ];
        check(&softirq, Work::SoftIrq);
        let below = |more: &[&'static str]| [softirq.as_slice(), more].concat();
        check(&below(&["net_rx_action", "__napi_poll"]), Work::SoftIrq);
        check(
            &below(&["process_backlog", "ip_rcv", "tcp_v4_rcv"]),
            Work::Transport,
        );
        check(&below(&["run_timer_softirq"]), Work::Scheduler);
        check(
            &["do_idle", "default_idle", "pv_native_safe_halt"],
            Work::Idle,
        );
        check(&["do_idle"], Work::Idle);
        check(&["do_idle", "schedule_idle", "__schedule"], Work::Scheduler);
    }

    #[test]
    fn what_compilers_append_does_not_matter() {
        check(&["pick_next_task_fair.part.0"], Work::Scheduler);
        check(&["default_idle.cold"], Work::Idle);
        check(&["default_idle_like_name"], Work::Other);
        check(&["no_rule_knows"], Work::Other);
        check(&[], Work::Other);
    }

    #[test]
    fn no_pattern_stands_behind_one_that_takes_all_of_its_names() {
        let patterns: Vec<&str> = RULES.iter().flat_map(|(_, all)| *all).copied().collect();
        for (at, pattern) in patterns.iter().enumerate() {
            let taken = patterns[..at].iter().find(|before| {
                !before.starts_with('=') && pattern.trim_start_matches('=').starts_with(**before)
            });
            assert_eq!(taken, None, "{pattern} is never reached");
        }
    }
}
