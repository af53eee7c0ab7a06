/** What an encrypted store says about its keys, and how its data comes under the writing one. */
export interface StoreEncryption {
  status(call: { readonly timeoutMs: number }): Promise<EncryptionStatus>
  /**
   * One bounded step: records first, then tables. What is encrypted with the writing key already is left alone, so that
   * it can be stopped at any point and begun again.
   */
  rekey(cursor: string | null, limit: number, call: { readonly timeoutMs: number }): Promise<Rekeyed>
  /** After the last step, when nothing was left: other keys may be removed from then on. False where that is not so. */
  finish(call: { readonly timeoutMs: number }): Promise<boolean>
}

export interface EncryptionStatus {
  readonly writeWith: string
  /** The ids of the configured keys. */
  readonly keys: readonly string[]
  /** Those that have written since the last `rekey`, and cannot be removed. */
  readonly writers: readonly string[]
  /** Records from before encryption may be there. */
  readonly plain: boolean
  /**
   * Rooms of tables from before encryption whose program has not run with keys since: which columns to encrypt is not known
   * yet, so that `finish` waits for them.
   */
  readonly undeclared: readonly string[]
}

export interface Rekeyed {
  /** Where to continue; null at the end. */
  readonly cursor: string | null
  /** What it looked at: `records`, or a table. */
  readonly at: string
  readonly looked: number
  readonly changed: number
  /** Records that were in use, or could not be decrypted: they are left for another run. */
  readonly left: number
}
