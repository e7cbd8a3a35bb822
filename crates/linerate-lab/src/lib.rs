//! A network of hosts on this machine: namespaces, a switch, links with rate, delay and loss.
pub mod enter;
pub mod error;
mod keeper;
pub mod lab;
pub mod network;
pub mod relay;
pub mod shape;
pub mod spec;
mod sys;
pub use enter::{Entered, enter};
pub use error::LabError;
pub use lab::{Lab, LabHost};
pub use spec::{HostSpec, LabSpec, LinkSpec, SpecError};
