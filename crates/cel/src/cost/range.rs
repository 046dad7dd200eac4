//! Sizes and costs as the least and the most they can be.
//!
//! Contract: `SizeEstimate` and `CostEstimate` of cel-go `checker/cost.go`; nothing overflows.

/// From the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Range {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Range = Range {
        min: 0,
        max: u64::MAX,
    };

    /// The start of a union.
    pub(crate) const EMPTY: Range = Range {
        min: u64::MAX,
        max: 0,
    };

    pub(crate) const fn fixed(value: u64) -> Range {
        Range {
            min: value,
            max: value,
        }
    }

    pub(crate) fn plus(self, other: Range) -> Range {
        Range {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(crate) fn times(self, other: Range) -> Range {
        Range {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(crate) fn scaled(self, factor: f64) -> Range {
        let scale = |value: u64| (value as f64 * factor).ceil() as u64;
        Range {
            min: scale(self.min),
            max: scale(self.max),
        }
    }

    pub(crate) fn union(self, other: Range) -> Range {
        Range {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}
