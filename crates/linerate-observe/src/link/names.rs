//! Names of network devices by their index, kept from reading to reading.

use std::io;

use super::{DeviceMessage, each_device};
use crate::sys::netlink::NetlinkSocket;

/// Devices whose names are kept; where there were more, as where containers come and go, it begins anew.
const NAMES_MAX: usize = 4096;

/// The names of devices by the kernel's index.
#[derive(Debug, Default)]
pub(crate) struct DeviceNames(Vec<(u32, String)>);

impl DeviceNames {
    /// Returns the name of the device with `index`; absent until it was asked for.
    pub(crate) fn of(&self, index: u32) -> Option<&str> {
        let known = self.0.iter().find(|(known, _)| *known == index);
        known.map(|(_, name)| name.as_str())
    }

    /// Asks for the names of all devices, and forgets those that are gone.
    pub(crate) fn renew(&mut self, socket: &mut NetlinkSocket) -> io::Result<()> {
        let mut all = Self::default();
        each_device(socket, |device| {
            all.remember(&device);
        })?;
        *self = all;
        Ok(())
    }

    /// Returns the device's name, renewed when it was renamed.
    pub(crate) fn remember(&mut self, device: &DeviceMessage<'_>) -> &str {
        let known = self.0.iter().position(|(index, _)| *index == device.index);
        if known.is_none() {
            if self.0.len() == NAMES_MAX {
                self.0.clear();
            }
            self.0.push((device.index, String::new()));
        }
        let place = known.unwrap_or(self.0.len() - 1);
        let name = &mut self.0[place].1;
        if name.as_bytes() != device.name {
            *name = device.name_text();
        }
        name
    }
}
