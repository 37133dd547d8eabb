/**
 * Types the commands of pages that are looked up, not followed. What they print depends on the events, so they
 * only have to succeed.
 */
import { execFile } from 'node:child_process'
import { delimiter, dirname } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { blocksOf } from '../../../tools/markdown.ts'
import { pageText } from '../../../tools/pages.ts'
import { SnippetServer } from '../../support/snippets.ts'
import { cannotFollow, kubectlBinary } from './follower.ts'

const run = promisify(execFile)
const COMMANDS_MS_MAX = 30_000
/** A command that goes on, such as a watch, is ended after this time, with this exit code of `timeout`. */
const STAYS_SECONDS = 3
const ENDED = 124

/** The section with commands, keyed by page; undefined for the whole page. */
const TYPED: Readonly<Record<string, string | undefined>> = {
  'docs/how-to/feed-log-pipelines.md': undefined,
  'docs/how-to/retention.md': '## What is kept',
  'docs/reference/summaries.md': undefined,
}

describe('typed as they are', { skip: cannotFollow }, () => {
  for (const [page, section] of Object.entries(TYPED)) {
    test(page, async () => {
      await using server = await SnippetServer.start()
      const path = [dirname(kubectlBinary), '/usr/bin', '/bin'].join(delimiter)
      const env = { ...server.env, PATH: path }
      for (const { language, text } of blocksOf(partOf(page, section))) {
        if (!/^sh\b/.test(language)) continue
        const cwd = server.env['HOME'] ?? ''
        if (language === 'sh') await run('bash', bash(text), { cwd, env, timeout: COMMANDS_MS_MAX })
        else await staysUp(text, { cwd, env })
      }
    })
  }
})

function partOf(page: string, section: string | undefined): string {
  const text = pageText(page)
  if (section === undefined) return text
  const [, rest = ''] = text.split(`\n${section}\n`)
  return rest.split(/^## /m)[0] ?? ''
}

function bash(commands: string): readonly string[] {
  return ['--norc', '-euo', 'pipefail', '-c', commands]
}

async function staysUp(
  commands: string,
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<void> {
  const args = [String(STAYS_SECONDS), 'bash', ...bash(commands)]
  try {
    await run('timeout', args, options)
  } catch (error) {
    if ((error as { code?: unknown }).code === ENDED) return
    throw error
  }
  throw new Error('it has ended by itself')
}
