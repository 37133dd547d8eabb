/** HTTP/1.1 over kept connections to one server with a self-signed certificate. */
import https from 'node:https'

const CONNECTIONS_MAX = 64
/** No response takes this long; a timeout counts as no response. */
const ANSWER_MS_MAX = 40_000

export interface Ask {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | undefined
}

export interface Answer {
  /** 0 when there is no response; the body then has the reason. */
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

export class Client {
  readonly #port: number
  readonly #token: string
  readonly #agent = new https.Agent({ keepAlive: true, maxSockets: CONNECTIONS_MAX })

  constructor(port: number, token: string) {
    this.#port = port
    this.#token = token
  }

  ask({ method, path, headers, body }: Ask): Promise<Answer> {
    return new Promise((resolve) => {
      const request = https.request({
        host: '127.0.0.1',
        port: this.#port,
        agent: this.#agent,
        rejectUnauthorized: false,
        timeout: ANSWER_MS_MAX,
        method,
        path,
        headers: {
          authorization: `Bearer ${this.#token}`,
          'user-agent': 'differential/1',
          ...headers,
          ...(body === undefined ? {} : { 'content-length': String(body.length) }),
        },
      })
      const fail = (error: Error): void =>
        resolve({ status: 0, headers: {}, body: Buffer.from(error.message) })
      request.on('timeout', () => request.destroy(new Error('no response in time')))
      request.on('error', fail)
      request.on('response', (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', fail)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          }),
        )
      })
      request.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}
