//! Whether a series grows: its slope, and how sure that is.

/// A straight line through samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trend {
    pub(crate) samples: usize,
    /// How far it is from the first sample to the last, in seconds.
    pub(crate) seconds: f64,
    pub(crate) mean: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// Units per hour.
    pub(crate) slope: f64,
    /// The standard error of the slope, which allows for samples that resemble those before them.
    pub(crate) error: f64,
    /// Half the width of the slope's 95 % confidence interval.
    pub(crate) margin: f64,
}

impl Trend {
    /// Fewer samples say nothing.
    pub(crate) const FEWEST: usize = 8;

    /// The trend of samples, each a time in seconds and a value; `None` for fewer than
    /// [`FEWEST`](Self::FEWEST).
    ///
    /// Least squares, with the Newey–West estimate of the slope's variance.
    pub(crate) fn of(samples: &[(f64, f64)]) -> Option<Self> {
        if samples.len() < Self::FEWEST {
            return None;
        }
        let count = samples.len() as f64;
        let hours = |seconds: f64| seconds / 3600.0;
        let middle = samples.iter().map(|(at, _)| hours(*at)).sum::<f64>() / count;
        let mean = samples.iter().map(|(_, value)| value).sum::<f64>() / count;
        let spread: f64 = samples.iter().map(|(at, _)| (hours(*at) - middle).powi(2)).sum();
        let slope =
            samples.iter().map(|(at, value)| (hours(*at) - middle) * (value - mean)).sum::<f64>()
                / spread;
        let scores: Vec<f64> = samples
            .iter()
            .map(|(at, value)| {
                let distance = hours(*at) - middle;
                distance * (value - mean - slope * distance)
            })
            .collect();
        let lags = (0.75 * count.cbrt()).round() as usize;
        let mut variance: f64 = scores.iter().map(|score| score * score).sum();
        for lag in 1..=lags {
            let weight = 1.0 - lag as f64 / (lags + 1) as f64;
            let pairs = scores.iter().zip(&scores[lag..]);
            variance += 2.0 * weight * pairs.map(|(left, right)| left * right).sum::<f64>();
        }
        let freedom = count - 2.0;
        let error = (variance.max(0.0) * count / freedom).sqrt() / spread;
        let (first, last) = (samples.first()?.0, samples.last()?.0);
        Some(Self {
            samples: samples.len(),
            seconds: last - first,
            mean,
            least: samples.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min),
            most: samples.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max),
            slope,
            error,
            margin: error * student(freedom),
        })
    }

    /// By how much the line rises from the first sample to the last.
    pub(crate) fn growth(&self) -> f64 {
        self.slope * self.seconds / 3600.0
    }

    /// Whether it does not grow, as far as can be told: the interval reaches down to 0, or the
    /// growth is below 2 % of the mean; and in no case is it 10 % or more.
    pub(crate) fn is_within_noise(&self) -> bool {
        let growth = self.growth() / self.mean;
        growth < 0.02 || (self.slope - self.margin <= 0.0 && growth < 0.1)
    }
}

/// The 97.5 % quantile of Student's distribution, by its expansion around the normal one.
fn student(freedom: f64) -> f64 {
    let z: f64 = 1.959_964;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z)
            / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Random;

    /// Thirty minutes of values around 50 with noise of ±1, which grow by so much an hour.
    fn samples(growth: f64) -> Vec<(f64, f64)> {
        let mut random = Random(7);
        (0..24)
            .map(|number| {
                let at = f64::from(number) * 75.0;
                (at, 50.0 + growth * at / 3600.0 + random.below(2001) as f64 / 1000.0 - 1.0)
            })
            .collect()
    }

    #[test]
    fn noise_is_within_noise() {
        let trend = Trend::of(&samples(0.0)).unwrap();
        assert!(trend.is_within_noise(), "{trend:?}");
        assert!(trend.slope.abs() < trend.margin, "{trend:?}");
    }

    #[test]
    fn growth_is_not() {
        let trend = Trend::of(&samples(4.0)).unwrap();
        assert!(!trend.is_within_noise(), "{trend:?}");
        assert!((trend.slope - 4.0).abs() < trend.margin, "{trend:?}");
    }

    #[test]
    fn a_fall_is_no_growth() {
        assert!(Trend::of(&samples(-20.0)).unwrap().is_within_noise());
    }

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (freedom, quantile) in [(6.0, 2.447), (10.0, 2.228), (22.0, 2.074), (100.0, 1.984)] {
            assert!((student(freedom) - quantile).abs() < 0.002, "{freedom}");
        }
    }
}
