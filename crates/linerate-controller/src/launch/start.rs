//! What all launchers do to start an agent: they give it a token and await its announcement.

use std::time::Duration;

use linerate_agent::api::{Announcement, PROGRAM};
use linerate_model::hex;

use super::error::LaunchError;

/// How long what starts an agent may take until that announces itself.
pub(super) const START: Duration = Duration::from_secs(60);

/// Returns a token for agents that nobody else knows.
pub(super) fn new_token() -> Result<String, LaunchError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(LaunchError::Token)?;
    Ok(hex::encode(&bytes))
}

/// Returns what an agent announces in a line, if it does.
pub(super) fn announced(line: &str) -> Option<Announcement> {
    let announcement: Announcement = serde_json::from_str(line).ok()?;
    (announcement.program == PROGRAM).then_some(announcement)
}
