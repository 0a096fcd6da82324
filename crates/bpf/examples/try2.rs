#![allow(clippy::all, missing_docs, clippy::print_stdout)]
fn main() {
    let file = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let mut o = sparelane_bpf::object::Object::parse("rapid", &file).unwrap();
    for (k, v) in [("packets",64),("packets_per_rate",16),("multiples_q16[0]",53870),("multiples_q16[1]",61880),("multiples_q16[2]",71082),("multiples_q16[3]",81652),("tau_us",10000),("eta_q16",3<<16),("gamma",3),("window",16000),("initial_bps",20_000_000),("highest_bps",1000_000_000),("starts_after_timeout",1),("most_lateness_ns",1_000_000),
      ("estimator.bass_passes",3),("estimator.spike_factor_q16",32768),("estimator.spike_floor_ns",5000),("estimator.excursion_share_q16",1966),("estimator.excursion_persistence_q16",29491),("estimator.excursion_samples",8)] { if let Err(e)=o.set(k, v) {println!("{e}");} }
    let k = sparelane_bpf::kernel::Kernel::running().unwrap();
    let t=std::time::Instant::now();
    match o.register(&std::env::args().nth(2).unwrap(), &k) { Ok(r) => {println!("{:?} {:?}", r, t.elapsed()); std::thread::sleep(std::time::Duration::from_secs(std::env::args().nth(3).unwrap().parse().unwrap()));}, Err(e) => println!("{e}") }
}
