//! x

/// Settings of the memory store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    /// The most counters that are kept at a time, over all limits; each takes 16 to 32 bytes for a
    /// bucket or a fixed window.
    pub keys_max: u64,
    /// What happens to a request that would need one more.
    pub at_cap: AtCap,
    /// Whether counters remember whose they are, so that they can be listed. Costs memory.
    pub names: bool,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { keys_max: 10_000_000, at_cap: AtCap::Allow, names: false }
    }
}

/// What happens to a request that would need one counter more than the cap. Live counters are never
/// dropped for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtCap {
    /// The limit whose counter finds no room does not apply to the request; that is counted.
    #[default]
    Allow,
    /// The limit whose counter finds no room refuses the request; that is counted.
    Deny,
}
