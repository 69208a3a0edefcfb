//! Faults in any order and several at a time, by chance from a seed.

use std::time::Duration;

use informer::source::WireFormat;
use informer_testkit::{Cut, Fault, Verb};
use tokio::time::sleep;

use crate::scene::{Scene, Way};

/// Numbers from a seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn fault(&mut self) -> Fault {
        let bytes = self.below(1500);
        let fault = match self.below(22) {
            0 => Fault::too_many_requests(),
            1 => Fault::too_many_requests().retry_after(20),
            2 => Fault::internal_error(),
            3 => Fault::unavailable(),
            4 => Fault::not_found().resource("configmaps"),
            5 => Fault::expired(),
            // Not a version that is too large: that means another history, and then all objects are
            // told anew.
            6 => Fault::unavailable().retry_after(3),
            7 => Fault::streaming_lists_refused(),
            8 => Fault::stall(),
            9 => Fault::hang_up(),
            10 => Fault::stall_after(bytes),
            11 => Fault::close_after(bytes),
            12 => Fault::reset_after(bytes),
            13 => Fault::drip(100, Duration::from_millis(500)),
            14 => Fault::gzip(),
            15 => Fault::truncated(),
            16 => Fault::malformed(),
            17 => Fault::oversized(5000),
            18 => Fault::instead("<html>no</html>\n"),
            19 => Fault::undecodable(NAMES[(bytes % 4) as usize]),
            20 => Fault::duplicates(),
            _ => Fault::without_end_bookmark(),
        };
        let fault = match self.below(4) {
            0 => fault.on(Verb::List),
            1 => fault.on(Verb::Watch),
            _ => fault,
        };
        fault.times(1 + self.below(4))
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Creates, changes and deletes.
fn write(scene: &Scene, chance: &mut Chance) {
    for _ in 0..=chance.below(6) {
        let (name, value) = (NAMES[chance.below(4) as usize], chance.below(1000).to_string());
        if chance.below(3) > 0 {
            scene.write(name, &value);
        } else if scene
            .server
            .cluster()
            .list("configmaps")
            .iter()
            .any(|object| object.key().name() == name)
        {
            scene.delete(name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g01_any_mixture_of_faults() {
    for seed in 0..100 {
        // Shown only if it fails.
        println!("seed {seed}");
        let mut chance = Chance(seed);
        let way = Way {
            streaming: chance.below(2) == 1,
            format: [WireFormat::Json, WireFormat::Protobuf][chance.below(2) as usize],
        };
        let page_size = [None, Some(2)][usize::from(chance.below(2) == 1)];
        let scene = Scene::new(way.options().page_size(page_size)).await;
        let faults = scene.server.faults();
        if chance.below(2) == 1 {
            faults.inject(chance.fault());
        }
        scene.factory.start();
        for _ in 0..10 {
            match chance.below(9) {
                0..=2 => write(&scene, &mut chance),
                3 => _ = faults.cut_watches(Cut::Close, None),
                4 => _ = faults.cut_watches(Cut::Reset, None),
                5 => _ = faults.cut_watches(Cut::Expired, None),
                6 => scene.server.cluster().compact(),
                _ => drop(faults.inject(chance.fault())),
            }
            if chance.below(3) > 0 {
                sleep(Duration::from_millis(chance.below(40_000))).await;
            }
        }
        faults.lift_all();
        // What could not be decoded is decoded when it changes, what a list left out comes with the
        // next one; all else is there without another word.
        sleep(Duration::from_secs(600)).await;
        if scene.informer.status().unreadable > 0 {
            faults.cut_watches(Cut::Expired, None);
        }
        let truth = scene.truth();
        for stale in scene.informer.status().stale {
            if truth.contains_key(&stale.key.to_string()) {
                scene.write(stale.key.name(), "good again");
            }
        }
        scene.settles().await;
        scene.end().await;
    }
}
