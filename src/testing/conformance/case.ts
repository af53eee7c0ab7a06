import type { Store } from '../../ledger/store/port.ts'

/** A store under test, fresh and empty, with a clock that can be moved. */
export interface Subject {
  readonly store: Store
  /** The same data through another store, as a second process has it; left out where there is no such thing. */
  another?(): Promise<Store>
  close(): Promise<void>
}

export interface Case {
  readonly name: string
  /** Left out where every store must pass. */
  readonly needs?: 'transactions'
  run(subject: Subject): Promise<void>
}
