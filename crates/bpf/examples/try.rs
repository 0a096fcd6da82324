#![allow(clippy::all, missing_docs, clippy::print_stdout)]
fn main() {
    let file = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let mut o = sparelane_bpf::object::Object::parse("rtcp", &file).unwrap();
    for (k, v) in [("alpha_q16", 500u64<<16),("delta_us_q16",655360),("past_q16",32768),("max_rate_q16",125<<16),("x_max_q16",250<<16),("initial_window",10),("min_window",2),("weight_count",1),("weights[0].bytes_q16",24000<<16),("weights[0].straight_q16",12000<<16),("weights[0].fall_us_q48",1466015503701),("weights[0].horizon_us",15360)] { if let Err(e)=o.set(k, v) {println!("{e}");} }
    let k = sparelane_bpf::kernel::Kernel::running().unwrap();
    let t=std::time::Instant::now();
    match o.register(&std::env::args().nth(2).unwrap(), &k) { Ok(r) => {println!("{:?} {:?}", r, t.elapsed()); std::thread::sleep(std::time::Duration::from_secs(std::env::args().nth(3).unwrap().parse().unwrap()));}, Err(e) => println!("{e}") }
}
