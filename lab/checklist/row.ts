/** A promise of the product, the rule that keeps it, and the tests that fail without the rule. */
export interface Row {
  /** As people talk about it: `G1`. */
  readonly id: string
  readonly promise: string
  /** Each is taken out by itself; a promise that several rules keep has several. */
  readonly removals: readonly Removal[]
}

/** One rule taken out of the source. */
export interface Removal {
  /** What is not true any more. */
  readonly without: string
  readonly file: string
  /** Stands in the file once, so that a removal that lost its target is noticed. */
  readonly find: string
  readonly replace: string
  /** Each of them passes with the rule and fails without it. */
  readonly noticed: readonly Test[]
}

export interface Test {
  readonly file: string
  /** A part of its full name, suites included: a test that runs on every store fails on at least one. */
  readonly name: string
}

/** The environment variable that carries the removal into test processes and the servers that they start. */
export const REMOVAL_VARIABLE = 'ONCEONLY_LAB_REMOVAL'
