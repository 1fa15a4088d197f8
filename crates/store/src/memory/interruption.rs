//! Where a thread may lose the processor in the middle of a step.
//!
//! It may anywhere, but hardly ever does where it matters, so tests make it happen: with debug
//! assertions, and once [`often`] was called, a thread gives up the rest of its time slice at many a
//! `point`. Without debug assertions a point is nothing.

use std::sync::atomic::{AtomicU32, Ordering};

static ONE_IN: AtomicU32 = AtomicU32::new(0);

/// From now on, in this process, a thread gives way at one in `one_in` points; at none if 0.
pub fn often(one_in: u32) {
    ONE_IN.store(one_in, Ordering::Relaxed);
}

/// A place between two accesses to what threads share.
#[inline]
pub(super) fn point() {
    #[cfg(all(debug_assertions, not(loom)))]
    {
        let one_in = ONE_IN.load(Ordering::Relaxed);
        if one_in > 0 && next_random().is_multiple_of(one_in) {
            std::thread::yield_now();
        }
    }
}

#[cfg(all(debug_assertions, not(loom)))]
fn next_random() -> u32 {
    use std::cell::Cell;
    use std::hash::{BuildHasher, RandomState};
    thread_local! {
        static STATE: Cell<u32> = Cell::new(RandomState::new().hash_one(0) as u32 | 1);
    }
    STATE.with(|state| {
        // Xorshift (Marsaglia, 2003).
        let mut next = state.get();
        next ^= next << 13;
        next ^= next >> 17;
        next ^= next << 5;
        state.set(next);
        next
    })
}
