/** What the person at the keyboard can mend: told in a sentence, without a stack. */
export class Usage extends Error {}
