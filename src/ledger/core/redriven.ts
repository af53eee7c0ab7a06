/**
 * Headers of a message that a person has had published again. Everybody who subscribes to its topic gets it, but only the
 * consumer that had given it up is to handle it: the others did, and may have forgotten it since.
 */
export const redrivenHeaders = {
  /** The consumer. */
  for: 'onceonly-redriven-for',
  /** Another one each time, because brokers that remember ids would take it for a copy, and drop it. */
  as: 'onceonly-redriven-as',
} as const
