import type { Call, Store } from '../port.ts'
import type { Box } from './box.ts'
import { createBox } from './box.ts'
import { openMarker } from './marker.ts'
import type { CheckedEncryption } from './options.ts'
import type { RecordCodec } from './records.ts'
import { createRecordCodec } from './records.ts'

/** An encrypted store whose keys fit. */
export interface Opened {
  /** Of the texts in the tables of wings. */
  readonly box: Box
  readonly codec: RecordCodec
  readonly encryption: CheckedEncryption
  /** Records from before encryption may be there. */
  plain(): boolean
  /** `rekey` has encrypted the last of them. */
  endPlain(): void
}

export interface Opener {
  /** Null before the first call. */
  current(): Opened | null
  /** Once for all callers; a store that was away is asked again by the next one. */
  open(call: Call): Promise<Opened>
}

export function createOpener(store: Store, encryption: CheckedEncryption): Opener {
  let current: Opened | null = null
  let opening: Promise<Opened> | null = null

  async function openNow(call: Call): Promise<Opened> {
    const marker = await openMarker(store, encryption, call)
    let isPlain = marker.plain
    const box = createBox(encryption, marker.indexKey, 'rows')
    const records = createBox(encryption, marker.indexKey, 'records')
    const plain = () => isPlain
    current = {
      box,
      encryption,
      codec: createRecordCodec(records, encryption, plain),
      plain,
      endPlain: () => void (isPlain = false),
    }
    return current
  }

  return {
    current: () => current,
    open(call) {
      if (current !== null) return Promise.resolve(current)
      opening ??= openNow(call).catch((error: unknown) => {
        opening = null
        throw error
      })
      return opening
    },
  }
}
