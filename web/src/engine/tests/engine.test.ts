/** The calls of the engine, its measurements, and the client with its workers. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Engine, type Port } from "../client.ts";
import { compare } from "../compare.ts";
import { tomlOf } from "../core.ts";
import {
  type Catalogue,
  type Edited,
  type Estimate,
  type FromWorker,
  type Mistake,
  PacketFate,
  PacketKind,
  type Parsed,
  type RunResults,
  type ShippedScenario,
  type ToWorker,
} from "../protocol.ts";
import { core, engine, results } from "./start.ts";

const here = core();
const client = engine();
after(() => client.close());

const TWO_FLOWS = `
# Two flows.
duration = "2s"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck_rate = "10Mbps"
bottleneck_delay = "10ms"
[queue]
limit = "20 packets"
[scheme.cubic]
controller = "cubic"
[workload]
kind = "bulk"
flows = 2
size = "unlimited"
`;

/** A copy of a scenario with another value in place of the first one. */
function replaced(from: string, to: string): string {
  assert.ok(TWO_FLOWS.includes(from), from);
  return TWO_FLOWS.replace(from, to);
}

test("the catalogue has controllers, queues, topologies and workloads, with typed keys", async () => {
  const { entries }: Catalogue = await client.catalogue();
  for (const [kind, name] of [["controller", "rc3"], ["queue", "codel"], ["topology", "star"], ["workload", "poisson"]]) {
    assert.ok(entries.some((entry) => entry.kind === kind && entry.name === name), `${kind} ${name}`);
  }
  const keys = entries.find(({ name }) => name === "dumbbell")!.keys;
  assert.equal(keys.find(({ name }) => name === "bottleneck_rate")!.type, "rate");
  const schema = await client.schema();
  assert.ok("definitions" in schema && "properties" in schema);
});

test("a parsed scenario has its tables, network and duration", async () => {
  const parsed = await client.parse(TWO_FLOWS);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  assert.deepEqual(parsed.schemes, ["cubic"]);
  assert.equal(parsed.durationS, 2);
  assert.equal(parsed.network.layout, "row");
  assert.equal(parsed.network.nodes.length, 6);
  assert.equal(parsed.network.links.length, 10);
  assert.equal((parsed.scenario["topology"] as { pairs: number }).pairs, 2);
});

test("a mistake has its line, its columns and its key", async () => {
  const parsed: Parsed = await client.parse(replaced('"10Mbps"', '"10 bananas"'));
  assert.ok(!parsed.ok);
  const [mistake] = parsed.mistakes;
  assert.equal(mistake!.line, 7);
  assert.deepEqual([mistake!.column, mistake!.endColumn], [1, 31]);
  assert.equal(mistake!.key, "topology.bottleneck_rate");
  assert.notEqual(parsed.scenario, null);
});

test("an edit keeps the rest of the text", async () => {
  const edited: Edited = await client.setKey(TWO_FLOWS, ["topology", "bottleneck_rate"], "20Mbps");
  assert.ok(edited.ok);
  assert.equal(edited.toml, replaced("10Mbps", "20Mbps"));
  const removed = await client.setKey(TWO_FLOWS, ["queue", "limit"], undefined);
  assert.ok(removed.ok && removed.toml === replaced('limit = "20 packets"\n', ""), JSON.stringify(removed));
});

test("tables become a text with the same tables", async () => {
  const parsed = await client.parse(TWO_FLOWS);
  assert.ok(parsed.ok);
  const written = await client.toToml(parsed.scenario);
  assert.ok(written.ok, JSON.stringify(written));
  const again = await client.parse(written.toml);
  assert.ok(again.ok);
  assert.deepEqual(again.scenario, parsed.scenario);
});

test("strings become TOML whatever they contain", async () => {
  const title = 'a "b" \\ \n \u0000 \u007f \u00e4 \ud83d\ude00 </script>';
  const edited = await client.setKey(TWO_FLOWS, ["title"], title);
  assert.ok(edited.ok);
  const parsed = await client.parse(edited.toml);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  assert.equal(parsed.scenario["title"], title);
  assert.equal(tomlOf({ a: [1, 1.5, true], "b c": {} }), '{ a = [1, 1.5, true], "b c" = {} }');
});

test("measurements change no digest", () => {
  const plain = results(here, TWO_FLOWS, { series: null });
  const watched = results(here, TWO_FLOWS, { packets: {} });
  assert.equal(plain.digest, watched.digest);
  assert.equal(plain.series, null);
  assert.equal(plain.packets, null);
});

test("series share their times, and windows and queues are plausible", () => {
  const { series } = results(here, TWO_FLOWS, { series: { samples: 201 } });
  assert.equal(series!.timeS.length, 201);
  assert.equal(series!.timeS[200], 2);
  assert.equal(series!.flows.length, 2);
  for (const { quantities, scheme } of series!.flows) {
    assert.equal(scheme, "cubic");
    for (const name of ["cwnd_bytes", "in_flight_bytes", "srtt_s", "throughput_bps"]) {
      assert.equal(quantities[name]!.length, 201, name);
    }
  }
  const bottleneck = series!.links.find(({ name }) => name === "west->east")!;
  const late = bottleneck.utilization.slice(100);
  assert.ok(late.every((share) => share > 0.8 && share <= 1), String(late));
  assert.ok(Math.max(...bottleneck.backlogBytes) <= 21 * 1500);
  const rate = series!.schemes[0]!.throughputBps.slice(100);
  const mean = rate.reduce((sum, value) => sum + value, 0) / rate.length;
  assert.ok(mean > 8e6 && mean < 10e6, String(mean));
});

test("each packet takes its way hop by hop", () => {
  const { packets, network, flows } = results(here, TWO_FLOWS, { packets: { fromS: 0, toS: 1 } });
  const all = packets!;
  assert.ok(!all.isCut && all.count > 1000, String(all.count));
  const fates = [0, 0, 0];
  for (let row = 0; row < all.count; row++) {
    fates[all.fate[row]!]!++;
    const [first, end] = [all.firstHop[row]!, all.firstHop[row + 1]!];
    let at = all.sentS[row]!;
    for (let hop = first; hop < end; hop++) {
      const link = network.links[all.hopLink[hop]!]!;
      if (hop > first) assert.equal(link.from, network.links[all.hopLink[hop - 1]!]!.to);
      assert.ok(all.hopEnterS[hop]! >= at - 1e-9, `packet ${row} enters before it arrives`);
      const leave = all.hopLeaveS[hop]!;
      if (Number.isNaN(leave)) continue;
      const transmission = (8 * all.bytes[row]!) / link.rateBps;
      assert.ok(leave - all.hopStartS[hop]! <= transmission + 1e-9 && all.hopStartS[hop]! >= all.hopEnterS[hop]! - 1e-9);
      at = leave + link.delayS;
    }
    if (all.fate[row] === PacketFate.Arrived) {
      assert.equal(end - first, 3, `packet ${row} crosses three links`);
      assert.ok(Math.abs(all.endS[row]! - at) < 1e-6, `packet ${row} ends when it arrives`);
    }
  }
  assert.ok(fates[PacketFate.Dropped]! > 5, `drops: ${fates}`);
  const drops = flows.columns["lost_packets"]!;
  assert.ok(drops.type === "number" && drops.values[0]! + drops.values[1]! > 0);
  const kinds = new Set(all.kind);
  assert.ok(Object.values(PacketKind).every((kind) => kinds.has(kind)), String([...kinds]));
});

test("dropped packets end in the queue that dropped them", () => {
  const { packets, network } = results(here, TWO_FLOWS, { packets: {} });
  const names = network.nodes.map(({ name }) => name);
  for (let row = 0; row < packets!.count; row++) {
    if (packets!.fate[row] !== PacketFate.Dropped) continue;
    const last = network.links[packets!.hopLink[packets!.firstHop[row + 1]! - 1]!]!;
    assert.equal(`${names[last.from]}->${names[last.to]}`, "west->east");
  }
});

test("the record of packets stops at its limit", () => {
  const { packets } = results(here, TWO_FLOWS, { packets: { most: 50 } });
  assert.equal(packets!.count, 50);
  assert.ok(packets!.isCut && packets!.toS < 0.5);
  const one = results(here, TWO_FLOWS, { packets: { flow: 1 } }).packets!;
  assert.deepEqual([...new Set(one.flow)], [1]);
});

test("RC3 sends from both ends of its data, in lower classes from the far end", () => {
  const shipped = here.call("scenarios", []) as ShippedScenario[];
  const { toml } = shipped.find(({ name }) => name === "rc3-example-66")!;
  const { packets } = results(here, toml, { packets: { flow: 0 } });
  const data = [...packets!.kind.keys()].filter((row) => packets!.kind[row] === PacketKind.Data);
  const low = data.filter((row) => packets!.class[row]! > 0).map((row) => packets!.segment[row]!);
  const high = data.filter((row) => packets!.class[row] === 0).map((row) => packets!.segment[row]!);
  assert.ok(low.length > 0 && high.length > 0);
  assert.equal(Math.max(...low), 65);
  assert.equal(high[0], 0);
});

test("a scenario with RCP runs without packets and says why", () => {
  const toml = replaced('controller = "cubic"', 'controller = "rcp"');
  const found = results(here, `${toml}\n[queue.rcp]\n`, { packets: {} });
  assert.equal(found.packets, null);
  assert.match(found.packetsMissing!, /rate header/);
});

test("the summary has the numbers of the flows", () => {
  const { summary, totals, flows } = results(here, replaced('"unlimited"', '"100kB"'));
  assert.equal(summary.length, 1);
  assert.equal(summary[0]!.finished, 2);
  assert.equal(totals.finishedFlows, 2);
  const times = flows.columns["completion_s"]!;
  assert.ok(times.type === "number");
  assert.equal(summary[0]!.meanS, (times.values[0]! + times.values[1]!) / 2);
  assert.ok(Number.isNaN(summary[0]!.p95S));
});

test("the difference between variants is stated with its direction", () => {
  const fast = results(here, replaced('"unlimited"', '"100kB"'), { label: "B" });
  const slow = results(here, replaced('"unlimited"', '"100kB"').replace("10Mbps", "5Mbps"), { label: "A" });
  const [difference] = compare([slow, fast] as RunResults[]);
  assert.match(difference!.sentences[0]!, /^Mean completion time is \d+ % lower under B than under A\.$/);
  const [same] = compare([slow, { ...slow, label: "C" }] as RunResults[]);
  assert.equal(same!.sentences[0], "Mean completion time is equal between C and A.");
});

test("an estimate of a short run is exact, and a long one is refused with the command for a terminal", async () => {
  const short = (await client.estimate(replaced('"2s"', '"50ms"'))) as Estimate;
  assert.ok(short.isExact && short.refusal === null && short.packetHops! > 10, JSON.stringify(short));
  const long = replaced('"2s"', '"900000s"').replace("10Mbps", "100Gbps").replace('"20 packets"', '"10MB"');
  const refused = (await client.estimate(long)) as Estimate;
  assert.equal(refused.refusal?.cause, "time", JSON.stringify(refused));
  assert.match(refused.refusal!.command, /^sparelane run /);
  const wrong = (await client.estimate("duration = 3")) as { mistakes: Mistake[] };
  assert.ok(wrong.mistakes.length > 0);
});

test("scenarios that need files or gigabytes are refused with the reason", async () => {
  const file = replaced('kind = "dumbbell"\npairs = 2\n', 'kind = "file"\npath = "no.topo"\n')
    .replace(/bottleneck_.*\n/g, "");
  for (const [toml, cause] of [[file, "files"], [replaced("flows = 2", "flows = 1000000"), "memory"]] as const) {
    const outcome = await client.run(toml).outcome;
    assert.ok(outcome.type === "refused" && outcome.refusal.cause === cause, JSON.stringify(outcome));
    const estimate = (await client.estimate(toml)) as Estimate;
    assert.equal(estimate.refusal?.cause, cause);
  }
});

test("a run reports progress, and its columns reach the page", async () => {
  const shares: number[] = [];
  const run = client.run(replaced('"2s"', '"200s"'), { label: "long" }, ({ share }) => shares.push(share));
  const outcome = await run.outcome;
  assert.ok(outcome.type === "done", JSON.stringify(outcome).slice(0, 300));
  assert.equal(outcome.results.label, "long");
  assert.ok(shares.length > 0 && shares.every((share, place) => share > 0 && share <= 1 && share >= (shares[place - 1] ?? 0)));
  assert.equal(outcome.results.series!.timeS.length, 1000);
});

test("a cancelled run ends at once, and the next one works", async () => {
  const run = client.run(replaced('"2s"', '"900000s"'));
  await new Promise((resolve) => setTimeout(resolve, 100));
  const began = performance.now();
  run.cancel();
  assert.deepEqual(await run.outcome, { type: "cancelled" });
  assert.ok(performance.now() - began < 1000);
  const next = await client.run(TWO_FLOWS).outcome;
  assert.equal(next.type, "done");
});

test("mistakes of a run are its outcome", async () => {
  const outcome = await client.run("nonsense").outcome;
  assert.ok(outcome.type === "mistakes" && outcome.mistakes[0]!.line === 1, JSON.stringify(outcome));
});

/** A worker that fails in the call of a text, and answers others with the text. */
function failingPort(sent: ToWorker[], bad: string): Port {
  const port: Port = {
    postMessage: (message) => {
      sent.push(message);
      if (message.type !== "call") return;
      const [text] = message.arguments as string[];
      const answer: FromWorker =
        text === bad
          ? { type: "error", id: message.id, message: "failed" }
          : { type: "result", id: message.id, result: text as never };
      setTimeout(() => port.onmessage?.({ data: answer } as MessageEvent<FromWorker>));
    },
    terminate: () => {},
    onmessage: null,
    onerror: null,
  };
  return port;
}

test("a call that fails does not fail those that were made before its failure was known", async () => {
  const sent: ToWorker[] = [];
  let opened = 0;
  const open = () => {
    opened += 1;
    return failingPort(sent, "bad");
  };
  const failing = new Engine({} as WebAssembly.Module, open);
  const calls = ["good", "bad", "better"].map((text) => failing.parse(text));
  const answers = await Promise.allSettled(calls);
  assert.deepEqual(
    answers.map((answer) => (answer.status === "fulfilled" ? answer.value : String(answer.reason))),
    ["good", "EngineError: failed", "better"],
  );
  assert.equal(opened, 2);
  failing.close();
});
