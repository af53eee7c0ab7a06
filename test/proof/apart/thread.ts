import { parentPort, workerData } from 'node:worker_threads'
import type { Work } from './apart.ts'

const { module, name, args } = workerData as Work
const exported = (await import(module)) as Record<string, (...args: readonly unknown[]) => unknown>
parentPort?.postMessage(await exported[name]?.(...args))
