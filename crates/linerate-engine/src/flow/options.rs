//! Applying the options of a workload to a socket, and reading back what became of them.

use std::io;
use std::os::fd::RawFd;

use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::run::ZeroCopyCount;
use linerate_model::setting::name;
use linerate_model::workload::{FlowOptions, Part, Setting};

use crate::flow::sampler::WindowsSeen;
use crate::flow::{FlowConfig, Shared, mechanism, mptcp, settings};
use crate::measure::tcp_info::{self, Widened};
use crate::sys::socket::{
    self, IP_TOS, IPV6_TCLASS, IntOption, SO_BUSY_POLL, SO_RCVBUF, SO_RCVLOWAT, SO_SNDBUF,
    TCP_CORK, TCP_INFO_BYTES_MAX, TCP_MAXSEG, TCP_NODELAY, TCP_QUICKACK,
};

/// An option that the kernel refused.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(crate) source: io::Error,
}

/// Sets what must be set before a connection exists.
///
/// The receive buffer decides the window scale that the first segment offers, the maximum segment
/// size is offered there too, and the congestion control algorithm then counts from the start. On
/// an accepted socket the same calls work, except that the first window (64 KiB by default) has
/// been offered already: a smaller buffer takes hold once that much has been received.
pub(crate) fn apply(fd: RawFd, options: &FlowOptions) -> Result<(), Refused> {
    let most = |value| i32::try_from(value).unwrap_or(i32::MAX);
    // Above the sysctl the kernel grants less and says nothing; `granted` shows it.
    let buffer = options.socket_buffer.map(|bytes| most(bytes.0));
    for (option, value) in [
        (SO_SNDBUF, buffer),
        (SO_RCVBUF, buffer),
        (
            TCP_MAXSEG,
            options.mss_bytes.map(|bytes| most(bytes.into())),
        ),
        (TCP_NODELAY, options.nagle.map(|nagle| i32::from(!nagle))),
        (TCP_CORK, options.cork.map(i32::from)),
        (SO_BUSY_POLL, options.busy_poll_us.map(|us| most(us.into()))),
    ] {
        if let Some(value) = value {
            set(fd, option, value)?;
        }
    }
    if let Some(tos) = options.tos {
        // A dual-stack socket takes both; one of IPv4 knows no traffic class.
        let v6 = set(fd, IPV6_TCLASS, tos.into());
        set(fd, IP_TOS, tos.into()).or(v6)?;
    }
    if let Some(rate) = options.pacing_bps {
        let bytes_per_s = rate / 8;
        socket::limit_pacing(fd, bytes_per_s)
            .map_err(|source| refused("SO_MAX_PACING_RATE", &bytes_per_s, source))?;
    }
    if let Some(algorithm) = &options.congestion {
        socket::set_congestion(fd, algorithm)
            .map_err(|source| refused(name::TCP_CONGESTION, algorithm, source))?;
    }
    Ok(())
}

/// Sets what makes sense only on a connection: how it acknowledges.
///
/// What TCP_QUICKACK does (tcp_sock_set_quickack in net/ipv4/tcp.c): 0 enters the interactive
/// mode, in which the quota of 16 immediate acknowledgements of a young connection is not used, so
/// delayed acknowledgements are allowed from the first byte on. 1 leaves that mode and sends an
/// acknowledgement that is due now; it gives no new quota, so it has to be repeated after each
/// receive. Mode 0 is left only when a delayed acknowledgement had to be sent by its timer, and
/// entered again with the next data that this end sends: repeating it would change nothing that
/// `delayed_ack = true` asks for, and it is not repeated. On a socket that is still connecting, 0
/// would delay the last segment of the handshake too; hence afterwards.
pub(crate) fn apply_connected(fd: RawFd, options: &FlowOptions) -> Result<(), Refused> {
    let Some(delayed_ack) = options.delayed_ack else {
        return Ok(());
    };
    set(fd, TCP_QUICKACK, i32::from(!delayed_ack))
}

/// Lets the receiver of a stream sleep until so much has come, or the end; returns how that is
/// told, if it was asked for.
///
/// To be called after the hello has been read, which is shorter. What the kernel does (tcp_data_ready
/// and tcp_stream_is_readable in net/ipv4/tcp.c): a blocking receive call and epoll alike wake at the
/// mark, at the end of the stream, at an error, and where the receive buffer or the window runs out;
/// what a call finds it takes, however little. So nothing is lost at the end, and no stream stands
/// still. The kernel grants half of its receive buffer at the most (tcp_set_rcvlowat).
pub(super) fn set_low_water(fd: RawFd, config: &FlowConfig) -> Result<Option<Setting>, Refused> {
    let asked = config.manner.receive_low_water;
    let Some(bytes) = asked.filter(|_| config.part == Part::Receiver) else {
        return Ok(None);
    };
    let value = i32::try_from(bytes.0).unwrap_or(i32::MAX);
    set(fd, SO_RCVLOWAT, value)?;
    let granted = socket::read(fd, SO_RCVLOWAT).ok();
    let capped_by = granted
        .filter(|&granted| granted < value)
        .map(|_| "half of the receive buffer (-w, net.ipv4.tcp_rmem)".to_owned());
    Ok(Some(Setting {
        capped_by,
        ..Setting::granted(
            name::SO_RCVLOWAT,
            Some(value.to_string()),
            granted.map(|value| value.to_string()),
        )
    }))
}

/// Sets one option.
pub(super) fn set(fd: RawFd, option: IntOption, value: i32) -> Result<(), Refused> {
    socket::set(fd, option, value).map_err(|source| refused(option.name, &value, source))
}

fn refused(name: &'static str, value: &impl ToString, source: io::Error) -> Refused {
    let value = value.to_string();
    Refused {
        name,
        value,
        source,
    }
}

/// Returns every setting as requested and granted.
pub(super) fn granted_settings(fd: RawFd, config: &FlowConfig) -> io::Result<Vec<Setting>> {
    let options = &config.options;
    let flag = |on: Option<bool>| on.map(|on| i32::from(!on).to_string());
    let mut all = buffers(fd, options)?;
    match config.manner.transport {
        Transport::Unix => {
            let unix = Some("unix".to_owned());
            all.push(Setting::granted(name::TRANSPORT, unix.clone(), unix));
            return Ok(all);
        }
        Transport::Mptcp => all.push(mptcp::transport_setting(fd)),
        Transport::Tcp | Transport::Udp => {}
    }
    // MPTCP does not tell all that its subflows have.
    let int = |option| socket::read(fd, option).ok().map(|value| value.to_string());
    all.extend([
        Setting::granted(TCP_NODELAY.name, flag(options.nagle), int(TCP_NODELAY)),
        Setting::granted(
            TCP_QUICKACK.name,
            flag(options.delayed_ack),
            int(TCP_QUICKACK),
        ),
        settings::congestion(
            options.congestion.as_deref(),
            socket::congestion(fd).ok(),
            config.part,
        ),
        Setting::granted(
            name::TCP_MAXSEG,
            options.mss_bytes.map(|bytes| bytes.to_string()),
            int(TCP_MAXSEG),
        ),
    ]);
    if let Some(cork) = options.cork {
        let asked = Some(i32::from(cork).to_string());
        all.push(Setting::granted(TCP_CORK.name, asked, int(TCP_CORK)));
    }
    all.extend(type_of_service(fd, options));
    Ok(all)
}

/// Returns the byte with DSCP and ECN, if one was asked for. The kernel keeps the bits of ECN of a
/// stream for itself (__ip_sock_set_tos in net/ipv4/ip_sockglue.c).
pub(super) fn type_of_service(fd: RawFd, options: &FlowOptions) -> Option<Setting> {
    let asked = options.tos?.to_string();
    Some(Setting::granted(
        IP_TOS.name,
        Some(asked),
        type_of_service_in_force(fd),
    ))
}

/// Reads the byte; IPv6 calls it traffic class, and only a socket of IPv6 has one.
pub(super) fn type_of_service_in_force(fd: RawFd) -> Option<String> {
    let byte = socket::read(fd, IPV6_TCLASS).or_else(|_| socket::read(fd, IP_TOS));
    byte.ok().map(|byte| byte.to_string())
}

/// Returns the sizes of the socket's buffers.
pub(super) fn buffers(fd: RawFd, options: &FlowOptions) -> io::Result<Vec<Setting>> {
    let buffer_bytes = options.socket_buffer.map(|bytes| bytes.0);
    Ok(vec![
        settings::buffer(
            name::SO_SNDBUF,
            "net.core.wmem_max",
            buffer_bytes,
            socket::read(fd, SO_SNDBUF)?,
        ),
        settings::buffer(
            name::SO_RCVBUF,
            "net.core.rmem_max",
            buffer_bytes,
            socket::read(fd, SO_RCVBUF)?,
        ),
    ])
}

/// Returns every setting of `flow` with what was in force at its end, and the windows it reached.
///
/// A value that cannot be read is left absent.
pub(crate) fn effective_settings(
    flow: &Shared,
    mut windows: WindowsSeen,
    zero_copy: Option<ZeroCopyCount>,
) -> Vec<Setting> {
    let fd = flow.fd();
    let mut room = [0; TCP_INFO_BYTES_MAX];
    let written = socket::tcp_info(fd, &mut room).unwrap_or(0);
    let kernel = &room[..written];
    Widened::default().for_each(kernel, |metric, value| windows.note(metric, value));
    let int = |option| socket::read(fd, option).ok();
    let usable = |option| int(option).map(|value| settings::usable_bytes(value).to_string());
    let (manner, counts) = (&flow.config.manner, flow.counters.read());
    let mut all: Vec<Setting> = flow.settings.into_iter().cloned().collect();
    for setting in &mut all {
        if setting.name == name::TCP_CONGESTION {
            settings::see_congestion(setting, socket::congestion(fd).ok(), flow.config.part);
            continue;
        }
        setting.effective = match setting.name.as_str() {
            name::SO_SNDBUF => usable(SO_SNDBUF),
            name::SO_RCVBUF => usable(SO_RCVBUF),
            _ if manner.transport == Transport::Udp => setting.granted.clone(),
            name::TCP_MAXSEG => {
                tcp_info::field_of(kernel, Metric::TcpSndMss).map(|value| value.to_string())
            }
            name::TRANSPORT if manner.transport == Transport::Mptcp => {
                Some(mptcp::effective_transport(fd, windows.subflows))
            }
            name::TRANSPORT | name::PACE => setting.granted.clone(),
            name::SEND => Some(mechanism::sent_words(flow.send, &counts, zero_copy)),
            name::RECEIVE => Some(mechanism::received_words(manner.receive, &counts)),
            option if option == IP_TOS.name => type_of_service_in_force(fd),
            other => {
                let mut plain = [TCP_NODELAY, TCP_QUICKACK, TCP_CORK, SO_RCVLOWAT].into_iter();
                let option = plain.find(|option| option.name == other);
                option.and_then(int).map(|value| value.to_string())
            }
        };
    }
    if matches!(manner.transport, Transport::Unix | Transport::Udp) {
        return all;
    }
    let text = |bytes: Option<i64>| bytes.map(|bytes| bytes.to_string());
    all.push(Setting::seen(name::TCPI_SND_WND, text(windows.send_bytes)));
    all.push(Setting::seen(
        name::TCPI_RCV_WND,
        text(windows.receive_bytes),
    ));
    all.push(Setting::seen(name::TCPI_OPTIONS, tcp_info::options(kernel)));
    all
}
