import { type Channel, LATE_SHARE, type Outgoing, type Result } from './channel.ts'

interface SmtpOptions {
  readonly url: string
  readonly from: string
  readonly timeoutMs: number
}

const SUBJECT_CHARS_MOST = 78

/**
 * A mail server. It knows no idempotency keys; the message id is always the same, so that a reader can detect copies.
 */
export function createSmtp(options: SmtpOptions): Channel {
  return {
    name: 'smtp',
    dedups: false,
    reference: ({ messageId }) => mailIdOf(messageId),
    reaches: ({ email }) => email !== null,
    complaints: ({ email }) =>
      email === null ? [{ field: 'recipientEmail', detail: 'is needed by the channel smtp' }] : [],
    send: (message) => sendMail(options, message),
  }
}

async function sendMail({ url, from, timeoutMs }: SmtpOptions, message: Outgoing): Promise<Result> {
  // A server without a mail server starts without it.
  const { createTransport } = await import('nodemailer')
  // Half the time for the way to the server: an error on it proves more than a time-out of the whole.
  const early = { connectionTimeout: timeoutMs / 2, greetingTimeout: timeoutMs / 2 }
  const times = { ...early, socketTimeout: timeoutMs * LATE_SHARE }
  const transport = createTransport({ url, ...times, disableFileAccess: true, disableUrlAccess: true })
  let handedOver = false
  // The content leaves only after the server has agreed to it; until then nothing can have been sent.
  transport.use('stream', ({ message: mime }, done) => {
    const open = mime.createReadStream.bind(mime)
    mime.createReadStream = (given) => {
      const stream = open(given)
      const pipe = stream.pipe.bind(stream)
      stream.pipe = (...to) => {
        handedOver = true
        return pipe(...to)
      }
      return stream
    }
    done()
  })
  try {
    const { messageId } = await transport.sendMail({
      from,
      to: message.email ?? '',
      subject: message.subject ?? subjectOf(message.body),
      messageId: mailIdOf(message.messageId),
      text: textOf(message),
      attachments: message.attachments.flatMap(({ filename, contentType, base64 }) =>
        base64 === undefined ? [] : [{ filename, contentType, content: base64, encoding: 'base64' }],
      ),
    })
    return { kind: 'sent', providerMessageId: messageId }
  } catch (error) {
    return resultOf(error, handedOver)
  } finally {
    transport.close()
  }
}

/** The server's own word decides; without one it depends on whether the content had left. */
function resultOf(error: unknown, handedOver: boolean): Result {
  const { message, responseCode, command } = error as Error & { responseCode?: number; command?: string }
  const reason = `The mail server refused or was lost: ${message}`
  // 421 is the server going away: what it had read by then is unknown.
  if (responseCode !== undefined && !(handedOver && responseCode === 421)) {
    return { kind: responseCode >= 500 ? 'failed' : 'not_now', error: reason, code: `smtp_${responseCode}` }
  }
  if (handedOver) return { kind: 'unknown', error: reason, code: 'no_answer' }
  if (command === 'API') return { kind: 'failed', error: reason, code: 'malformed' }
  return { kind: 'not_now', error: reason, code: 'unreached', unreached: true }
}

/** Always the same, so that a reader can detect copies. */
function mailIdOf(messageId: string): string {
  return `<${messageId}@onceonly.invalid>`
}

/** The first line; a mail without a subject looks like spam. */
function subjectOf(body: string): string {
  const line = body.trim().split(/[\r\n]/, 1)[0] ?? ''
  const chars = Array.from(line)
  return chars.length <= SUBJECT_CHARS_MOST ? line : `${chars.slice(0, SUBJECT_CHARS_MOST - 1).join('')}…`
}

/** Attachments that are only named by a URL are linked: fetching what a caller names would open our network to them. */
function textOf({ body, attachments }: Outgoing): string {
  const links = attachments.flatMap(({ filename, url }) => (url === undefined ? [] : [`${filename}: ${url}`]))
  return links.length === 0 ? body : `${body}\n\n${links.join('\n')}`
}
