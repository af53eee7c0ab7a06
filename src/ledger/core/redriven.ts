/**
 * Headers of a redriven message. Every subscriber of its topic gets it, but only the consumer that had given it up handles
 * it: the others have handled it, and may have forgotten it since.
 */
export const redrivenHeaders = {
  /** The consumer. */
  for: 'onceonly-redriven-for',
  /** Another one each time, because brokers that remember ids would take it for a copy, and drop it. */
  as: 'onceonly-redriven-as',
} as const
