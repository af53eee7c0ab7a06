/** One item of a batch, as its caller gave it. */
export interface BulkItem<I> {
  readonly itemKey: string
  readonly input: I
}

/** A bulk request in one spelling; or, field by field, what is wrong with it. */
export type Batch =
  | { readonly batchId: string; readonly items: readonly BulkItem<Readonly<Record<string, unknown>>>[] }
  | { readonly errors: readonly BatchError[] }

export interface BatchError {
  readonly field: string
  readonly detail: string
}

/** Reserved in one round trip, and answered before a client gives up. */
const ITEMS_MOST = 500
/** As long as any other key. */
const KEY_CHARS_MOST = 255

/** Reads `{ batchId, items: [{ itemKey, … }] }`. What the items ask for is for their operation to judge. */
export function readBatch(body: unknown, { itemsMost = ITEMS_MOST }: { readonly itemsMost?: number } = {}): Batch {
  if (!isFields(body)) return { errors: [{ field: 'body', detail: 'is not a JSON object' }] }
  const errors: BatchError[] = []
  const { batchId, items } = body
  const complaint = complaintAboutKey(batchId)
  if (complaint !== null) errors.push({ field: 'batchId', detail: complaint })
  if (!Array.isArray(items) || items.length < 1 || items.length > itemsMost) {
    errors.push({ field: 'items', detail: `is not a list of 1 to ${itemsMost} items` })
    return { errors }
  }
  const seen = new Set<unknown>()
  const read = items.map((item: unknown, at) => {
    if (!isFields(item)) {
      errors.push({ field: `items[${at}]`, detail: 'is not a JSON object' })
      return { itemKey: '', input: {} }
    }
    const { itemKey, ...input } = item
    const wrong = seen.has(itemKey) ? 'stands twice in this request' : complaintAboutKey(itemKey)
    if (wrong !== null) errors.push({ field: `items[${at}].itemKey`, detail: wrong })
    seen.add(itemKey)
    return { itemKey: String(itemKey), input }
  })
  return errors.length > 0 ? { errors } : { batchId: String(batchId), items: read }
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The rules for a key in a header hold here, too: visible ASCII, so that it is stored as it was given. */
function complaintAboutKey(key: unknown): string | null {
  if (key === undefined || key === null) return 'is missing'
  if (typeof key !== 'string') return 'is not a string'
  return /^[\x21-\x7e]+$/.test(key) && key.length <= KEY_CHARS_MOST
    ? null
    : `is not made of 1 to ${KEY_CHARS_MOST} visible ASCII characters`
}
