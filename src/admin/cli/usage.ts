/** A mistake on the command line: shown as one sentence, without a stack. */
export class Usage extends Error {}

const WORD_CHARS = 60

/** A word as it was typed, or pasted by mistake: short, and without characters that move the cursor. */
export function brief(word: string): string {
  const plain = word.replaceAll(/\p{Cc}/gu, '?')
  return plain.length <= WORD_CHARS ? plain : `${plain.slice(0, WORD_CHARS)}…`
}
