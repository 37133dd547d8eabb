/** A real browser on the page of a real server. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core'
import type { ClientCertificate } from './client-certs.ts'

/** Debian's; `.ci/run` installs it. */
// biome-ignore lint/style/noProcessEnv: where the browser of this machine is.
export const browserProgram: string = process.env['CHROMIUM'] ?? '/usr/bin/chromium-headless-shell'

const screenshots = join(import.meta.dirname, '../../.cache/screenshots')

export interface Visit {
  /** What comes after `/ui/`: a query string, a fragment. */
  readonly path?: string
  /** Signs in with this token. Undefined: the page is left as it opens. */
  readonly token?: string
  readonly width?: number
  readonly height?: number
  readonly theme?: 'light' | 'dark'
  /** Presented to the server. */
  readonly certificate?: ClientCertificate
  /** The page believes that it is always this time. */
  readonly nowMs?: number
  /** Other settings of the system that the page can ask for. */
  readonly media?: Pick<BrowserContextOptions, 'forcedColors' | 'reducedMotion' | 'contrast'>
}

/** Chromium without a window. Ended, with all its pages, at the end of the scope. */
export class TestBrowser implements AsyncDisposable {
  readonly #browser: Browser

  static async start(): Promise<TestBrowser> {
    const args = ['--no-sandbox', '--disable-gpu', '--force-device-scale-factor=1']
    return new TestBrowser(await chromium.launch({ executablePath: browserProgram, args }))
  }

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  /** Opens the page of a server at `base`, a URL without a path. */
  async open(base: string, visit: Visit = {}): Promise<TestPage> {
    const { path = '', token, width = 1280, height = 800, theme = 'light' } = visit
    const { certificate, nowMs, media = {} } = visit
    const context = await this.#browser.newContext({
      // The server of a test has a certificate of its own.
      ignoreHTTPSErrors: true,
      viewport: { width, height },
      colorScheme: theme,
      timezoneId: 'UTC',
      locale: 'en-GB',
      ...media,
      ...(certificate === undefined ? {} : { clientCertificates: [presented(base, certificate)] }),
    })
    const page = new TestPage(context, await context.newPage())
    if (nowMs !== undefined) await page.page.clock.setFixedTime(nowMs)
    await page.page.goto(`${base}/ui/${path}`)
    if (token !== undefined) await page.signIn(token)
    return page
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close()
  }
}

/**
 * One tab in a browser profile of its own. The end of its scope fails when the browser has reported a
 * problem that the test did not allow.
 */
export class TestPage implements AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  readonly #problems: string[] = []
  readonly #allowed: RegExp[] = []

  constructor(context: BrowserContext, page: Page) {
    this.context = context
    this.page = page
    // Violations of the content security policy are console errors, too.
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') {
        this.#problems.push(message.text())
      }
    })
    page.on('pageerror', (error) => this.#problems.push(String(error.stack ?? error)))
  }

  async signIn(token: string): Promise<void> {
    // The page asks without a token first.
    this.allowProblems(/status of 401/)
    await this.page.getByLabel('Bearer token').fill(token)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    await this.page.getByRole('navigation', { name: 'Views' }).waitFor()
  }

  /** Another state of the page, as a link in it would lead there; the user stays signed in. */
  async go(search: string): Promise<void> {
    await this.page.evaluate(
      `history.pushState(null, '', ${JSON.stringify(search || '?')}); dispatchEvent(new PopStateEvent('popstate'))`,
    )
    await this.settle()
  }

  /** Waits until nothing is loading: what is shown then stays. */
  async settle(): Promise<void> {
    const isBusy = `document.querySelector('[aria-busy="true"], .starting') !== null`
    // What is loaded may cause the next load: it has to stay quiet for some time.
    for (let quiet = 0; quiet < 5; quiet = (await this.page.evaluate(isBusy)) ? 0 : quiet + 1) {
      await this.page.waitForTimeout(50)
    }
  }

  /** The browser itself reports failed requests as errors: a test that causes some allows them. */
  allowProblems(...patterns: readonly RegExp[]): void {
    this.#allowed.push(...patterns)
  }

  /** Called at the end of the scope as well. */
  assertNoProblems(): void {
    const problems = this.#problems.filter(
      (problem) => !this.#allowed.some((pattern) => pattern.test(problem)),
    )
    assert.deepEqual(problems, [])
  }

  /** Presses a button of the menu "Copy as", and returns what is in the clipboard then. */
  async copied(name: string): Promise<string> {
    await this.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await this.page.getByRole('button', { name: `Copy as ${name}` }).click()
    await this.page.locator('.announcement').getByText(`Copied as ${name}.`).waitFor()
    // The page itself may write to the clipboard, but not read it.
    const reader = await this.context.newPage()
    await reader.goto(new URL('/livez', this.page.url()).href)
    const text = String(await reader.evaluate('navigator.clipboard.readText()'))
    await reader.close()
    return text
  }

  /** Writes `.cache/screenshots/<name>.png`. */
  async screenshot(name: string): Promise<void> {
    mkdirSync(screenshots, { recursive: true })
    await this.page.screenshot({ path: join(screenshots, `${name}.png`) })
  }

  /** Fails when axe finds a violation, and when the page scrolls sideways. */
  async assertAccessible(): Promise<void> {
    // Not by addScriptTag, which the policy of the page refuses.
    if (!(await this.page.evaluate('"axe" in window'))) await this.page.evaluate(axeSource())
    const result = await this.page.evaluate(`axe.run(document, { resultTypes: ['violations'] })`)
    const { violations } = result as { violations: readonly AxeViolation[] }
    const found = violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
    )
    assert.deepEqual(found, [])
    const overflow = await this.page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    )
    assert.equal(overflow, 0, 'the page is wider than the window')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close()
    this.assertNoProblems()
  }
}

/** Waits for the value of an input: the URL changes before what is drawn from it. */
export async function waitForValue(input: Locator, value: string): Promise<void> {
  const deadline = Date.now() + 10_000
  while ((await input.inputValue()) !== value && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.equal(await input.inputValue(), value)
}

function presented(origin: string, { cert, key }: ClientCertificate): PresentedCertificate {
  return { origin, cert: Buffer.from(cert), key: Buffer.from(key) }
}

interface PresentedCertificate {
  readonly origin: string
  readonly cert: Buffer
  readonly key: Buffer
}

interface AxeViolation {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}

function axeSource(): string {
  return readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
}
