/** Requests of the attacks as text, and the end of a response on a raw socket. */
import type { Socket } from 'node:net'
import { LIST, SENDERS } from './attack.ts'

export function event(metadata: object): object {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata,
    eventTime: '2026-01-02T03:04:05.000000Z',
    reportingController: 'example.org/attacks',
    reportingInstance: 'one',
    action: 'Act',
    reason: 'Because',
    type: 'Normal',
    regarding: {
      kind: 'Pod',
      namespace: (metadata as { namespace?: string }).namespace,
      name: 'p',
    },
  }
}

export function bearer(sender: 'reader' | 'editor'): string {
  return `Bearer ${SENDERS[sender]}`
}

export function get(sender: 'reader'): string {
  return `GET ${LIST} HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer(sender)}\r\n\r\n`
}

export function post(bytes: number): string {
  const type = 'Content-Type: application/json'
  const authorization = `Authorization: ${bearer('editor')}`
  return `POST ${LIST} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n${type}\r\nContent-Length: ${bytes}\r\n\r\n`
}

/** Resolves at the end of one response: by its length or, if chunked, at the last chunk. */
export function ended(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    let head = ''
    let read = 0
    let length: number | undefined
    const onData = (chunk: Buffer): void => {
      read += chunk.length
      if (length === undefined) {
        head += chunk.toString('latin1')
        length = lengthOf(head)
      }
      if (read >= (length ?? Number.POSITIVE_INFINITY) || chunk.subarray(-5).equals(LAST)) over()
    }
    const over = (): void => {
      socket.off('data', onData).off('close', over)
      resolve()
    }
    socket.on('data', onData).on('close', over)
  })
}

/** The length of a response with its head, if the head is complete and has a content-length. */
function lengthOf(head: string): number | undefined {
  const end = head.indexOf('\r\n\r\n')
  const length = /content-length: (\d+)/i.exec(head)?.[1]
  return end === -1 || length === undefined ? undefined : end + 4 + Number(length)
}

const LAST = Buffer.from('0\r\n\r\n')
