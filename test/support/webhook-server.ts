import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { CertificateAuthority } from './certs.ts'

/** Handles a request; without a response it stays open. */
export type WebhookAnswer = (question: unknown, response: ServerResponse) => void

/** A webhook for reviews, whose responses are set by the test. */
export class WebhookServer implements AsyncDisposable {
  answer: WebhookAnswer
  /** All requests, and their paths. */
  readonly questions: unknown[] = []
  readonly paths: (string | undefined)[] = []
  /** The most requests that were open at a time. */
  openMax = 0
  /** A kubeconfig for this server. */
  readonly kubeconfig: string
  readonly #server: https.Server
  #open = 0

  static async start(answer: WebhookAnswer): Promise<WebhookServer> {
    const authority = await CertificateAuthority.create('webhooks')
    const { cert, key } = await authority.issueServer()
    const server = https.createServer({ cert, key })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new WebhookServer(server, authority.cert, answer)
  }

  private constructor(server: https.Server, ca: Buffer, answer: WebhookAnswer) {
    this.#server = server
    this.answer = answer
    const { port } = server.address() as AddressInfo
    this.kubeconfig = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'here',
      contexts: [{ name: 'here', context: { cluster: 'here', user: 'us' } }],
      clusters: [
        {
          name: 'here',
          cluster: {
            server: `https://127.0.0.1:${port}/review`,
            'certificate-authority-data': ca.toString('base64'),
          },
        },
      ],
      users: [{ name: 'us', user: {} }],
    })
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#take(request, response).catch(() => response.destroy())
    })
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#open += 1
    this.openMax = Math.max(this.openMax, this.#open)
    response.once('close', () => {
      this.#open -= 1
    })
    let text = ''
    for await (const chunk of request) text += chunk
    const question: unknown = JSON.parse(text)
    this.questions.push(question)
    this.paths.push(request.url)
    this.answer(question, response)
  }

  /** Closes the server and cuts open requests. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
