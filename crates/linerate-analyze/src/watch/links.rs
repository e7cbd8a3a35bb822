//! The links of a host: rates, packets, drops and errors each way.

use linerate_model::metric::Metric;
use linerate_model::sample::Subject;
use serde::Serialize;

use super::{Span, Watched};

/// One direction of a link; absent where one reading is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Way {
    /// Bytes, Ethernet headers included.
    pub bytes: Option<f64>,
    /// Packets as the kernel counts them: aggregated or not yet segmented.
    pub packets: Option<f64>,
    /// Packets dropped.
    pub dropped: Option<f64>,
    /// Bad packets.
    pub errors: Option<f64>,
}

impl Way {
    /// Returns the mean size of a packet in bytes.
    pub fn packet_bytes(&self) -> Option<f64> {
        let (bytes, packets) = self.bytes.zip(self.packets)?;
        (packets > 0.0).then(|| bytes / packets)
    }
}

/// One link.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LinkRow {
    /// Name of the device.
    pub link: String,
    /// What it received.
    pub rx: Way,
    /// What it sent.
    pub tx: Way,
}

/// Returns every link, by name.
pub fn links(watched: &Watched, span: Span) -> Vec<LinkRow> {
    let rows = watched.subjects().filter_map(|subject| {
        let Subject::Link(link) = subject else {
            return None;
        };
        let change = |metric| watched.change(subject, metric, span);
        Some(LinkRow {
            link: link.clone(),
            rx: Way {
                bytes: change(Metric::LinkRxBytes),
                packets: change(Metric::LinkRxPackets),
                dropped: change(Metric::LinkRxDropped),
                errors: change(Metric::LinkRxErrors),
            },
            tx: Way {
                bytes: change(Metric::LinkTxBytes),
                packets: change(Metric::LinkTxPackets),
                dropped: change(Metric::LinkTxDropped),
                errors: change(Metric::LinkTxErrors),
            },
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn a_link_has_the_rates_of_its_counters() {
        let mut watched = Watched::default();
        for (at_ns, bytes, packets) in [(0, 0, 0), (500_000_000, 75_000, 50)] {
            let samples = [
                sample("link:eth0", Metric::LinkTxBytes, at_ns, bytes),
                sample("link:eth0", Metric::LinkTxPackets, at_ns, packets),
                sample("cpu:0", Metric::CpuUser, at_ns, 1),
            ];
            watched.take(at_ns, &samples);
        }
        let rows = links(&watched, Span::PerSecond);
        assert_eq!((rows.len(), rows[0].link.as_str()), (1, "eth0"));
        assert_eq!(rows[0].tx.bytes, Some(150_000.0));
        assert_eq!(rows[0].tx.packet_bytes(), Some(1500.0));
        assert_eq!(rows[0].rx, Way::default(), "absent is not zero");
        assert_eq!(links(&watched, Span::SinceStart)[0].tx.packets, Some(50.0));
    }
}
