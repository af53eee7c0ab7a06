import { parentPort } from 'node:worker_threads'
import type { BodyQuestion } from '../protocol/large-body.ts'
import { toldOf } from './fingerprints.ts'

/** The thread of `createFingerprints`. */
parentPort?.on('message', ({ id, question }: { readonly id: number; readonly question: BodyQuestion }) => {
  parentPort?.postMessage(toldOf(id, question))
})
