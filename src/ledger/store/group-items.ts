interface Keyed {
  readonly key: string | null
}

/** The order of a flush. */
export function byKey(a: Keyed, b: Keyed): number {
  return a.key === b.key ? 0 : (a.key ?? '') < (b.key ?? '') ? -1 : 1
}

/** Where the key stands in a flush that is sorted by keys, or would stand. */
export function placeOf(batch: readonly Keyed[], key: string): number {
  let [from, to] = [0, batch.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((batch[middle]?.key ?? '') < key) from = middle + 1
    else to = middle
  }
  return from
}

/** Keeps in the array what `stays`, in its order, without a second array for each flush. */
export function leave<T>(items: T[], stays: (item: T) => boolean): void {
  let kept = 0
  for (const item of items) if (stays(item)) items[kept++] = item
  items.length = kept
}

/** A large crowd is spread over the lanes that are free, so that none of them idles; a small one shares one commit. */
export function shareOf(waiting: number, free: number, splitRows: number): number {
  return waiting > splitRows && free > 1 ? Math.ceil(waiting / free) : waiting
}
