import { workerData } from 'node:worker_threads'

/**
 * A thread that ends its whole process some microseconds after a signal. The main thread may be inside a
 * synchronous commit at that moment, which is the point.
 */
const [armed, delay] = [0, 1]
const cells = new Int32Array(workerData as SharedArrayBuffer)
Atomics.wait(cells, armed, 0)
const dieAt = process.hrtime.bigint() + BigInt(cells[delay] ?? 0) * 1_000n
while (process.hrtime.bigint() < dieAt);
process.kill(process.pid, 'SIGKILL')
