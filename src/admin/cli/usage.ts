/** A mistake on the command line: shown as one sentence, without a stack. */
export class Usage extends Error {}
