//! How the seats of the server are shared by its levels while some of them are idle.
//!
//! Every level has a nominal share. What a level may lend and does not use goes to those that ask
//! for more than theirs, in proportion to what they ask for. Contract: the borrowing adjustment of
//! `apf_controller.go` of the API server's `flowcontrol`.

/// A level in the eyes of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Need {
    /// The seats that are its own.
    pub nominal: u32,
    /// How many of them others may have while it does not need them.
    pub lendable: u32,
    /// How many seats of others it may have; `None`: as many as there are.
    pub borrowable: Option<u32>,
    /// The most seats it wanted of late.
    pub demand: u32,
}

impl Need {
    /// What it keeps in any case.
    fn least(&self) -> f64 {
        f64::from(
            self.nominal
                .saturating_sub(self.lendable)
                .max(self.demand.min(self.nominal)),
        )
    }

    fn most(&self, total: u32) -> f64 {
        f64::from(match self.borrowable {
            Some(seats) => self.nominal.saturating_add(seats),
            None => total.max(self.nominal),
        })
    }

    fn share(&self, factor: f64, total: u32) -> f64 {
        let wanted = f64::from(self.demand.max(1)).max(self.least()) * factor;
        wanted.clamp(self.least(), self.most(total))
    }
}

/// The seats of each level for the next while.
pub(crate) fn allocate(needs: &[Need]) -> Vec<u32> {
    let total: u32 = needs.iter().map(|need| need.nominal).sum();
    // A level that wants no more than its own leaves everyone with theirs.
    if needs.iter().all(|need| need.demand <= need.nominal) {
        return needs.iter().map(|need| need.nominal).collect();
    }
    let sum = |factor: f64| -> f64 {
        let shares = needs.iter().map(|need| need.share(factor, total));
        shares.sum()
    };
    // The sum grows with the factor: narrow it down to what there is.
    let (mut low, mut high) = (0.0, f64::from(total.max(1)));
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if sum(middle) > f64::from(total) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let seats = needs
        .iter()
        .map(|need| need.share(low, total).round() as u32);
    seats.map(|seats| seats.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: Need = Need {
        nominal: 100,
        lendable: 30,
        borrowable: None,
        demand: 0,
    };
    const WORK: Need = Need {
        nominal: 400,
        lendable: 360,
        borrowable: None,
        demand: 0,
    };

    #[test]
    fn who_gets_how_many_seats() {
        let cases = [
            ("nobody asks", SYSTEM, WORK, vec![100, 400]),
            (
                "within their own",
                Need {
                    demand: 90,
                    ..SYSTEM
                },
                Need {
                    demand: 400,
                    ..WORK
                },
                vec![100, 400],
            ),
            (
                "idle seats are lent, up to what may be lent",
                SYSTEM,
                Need {
                    demand: 900,
                    ..WORK
                },
                vec![70, 430],
            ),
            (
                "a borrower has a limit",
                SYSTEM,
                Need {
                    demand: 900,
                    borrowable: Some(10),
                    ..WORK
                },
                vec![90, 410],
            ),
            (
                "who needs its own keeps it",
                Need {
                    demand: 100,
                    ..SYSTEM
                },
                Need {
                    demand: 900,
                    ..WORK
                },
                vec![100, 400],
            ),
        ];
        for (name, system, work, expected) in cases {
            assert_eq!(allocate(&[system, work]), expected, "{name}");
        }
    }
}
