import { Composer, type CST, isScalar, Lexer, type ParsedNode, Parser } from 'yaml'
import { entityTooLarge } from '../../api/status.ts'
import { YamlSyntaxError } from '../../lib/text/yaml-documents.ts'

/**
 * Parses a YAML text into the nodes of its single document, with limits before and around the
 * library that parses it. Without them the library takes seconds for some texts of a few kilobytes,
 * because it continues after every error and recurses for every level.
 */

/** Together with the limits below, no text that we tried takes more than 30 ms. */
const LENGTH_MAX = 65_536

/** An event has about 250 tokens. Their number determines the parse time of the library. */
const TOKENS_MAX = 3000

/** The maximum depth of nested brackets. */
const FLOW_DEPTH_MAX = 100

/** The maximum of marks on one line: `- - - a: b` opens one level for each. */
const LINE_MARKS_MAX = 100

/** Messages of the library are truncated, since they may quote the text. */
const MESSAGE_LENGTH_MAX = 200

/** Returns undefined for a text without content. Throws a YamlSyntaxError or a StatusError 413. */
export function yamlNodes(text: string): ParsedNode | undefined {
  if (text.length > LENGTH_MAX) throw tooLarge(`${LENGTH_MAX} characters`)
  const tokens = checkedTokens(text)
  const composer = new Composer({
    schema: 'failsafe',
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  })
  stopAtFirstError(composer, text)
  const documents: (ParsedNode | null)[] = []
  for (const token of parsed(tokens)) {
    if (token.type === 'error') throw syntaxError(text, token.offset, token.message)
    for (const { contents } of composer.next(token)) documents.push(contents)
  }
  for (const { contents } of composer.end()) documents.push(contents)
  const [document, ...others] = documents
  // Empty documents are accepted, since files often end with a separator. A second event is an
  // error, since it would be ignored silently.
  if (!others.every(isEmptyDocument)) throw new YamlSyntaxError('yaml: more than one document')
  return document ?? undefined
}

function* parsed(tokens: readonly string[]): Generator<CST.Token> {
  const parser = new Parser()
  for (const token of tokens) yield* parser.next(token)
  yield* parser.end()
}

function isEmptyDocument(node: ParsedNode | null): boolean {
  if (node === null) return true
  return isScalar(node) && node.type === 'PLAIN' && ['', '~', 'null'].includes(String(node.value))
}

/** Returns the line number of an offset, counted from 1. */
export function lineAt(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1))
    line++
  return line
}

/** Tokenizing is cheap and shows how expensive parsing would be. */
function checkedTokens(text: string): readonly string[] {
  const tokens: string[] = []
  let depth = 0
  let marks = 0
  for (const token of lenientLexer().lex(text)) {
    if (tokens.push(token) > TOKENS_MAX) throw tooLarge(`${TOKENS_MAX} tokens`)
    if (token === '[' || token === '{') depth++
    else if (token === ']' || token === '}') depth = Math.max(0, depth - 1)
    else if (depth === 0) marks = marksAfter(marks, token)
    if (depth > FLOW_DEPTH_MAX || marks > LINE_MARKS_MAX) {
      throw new YamlSyntaxError('yaml: exceeded max depth')
    }
  }
  return tokens
}

/** Private members of the library's lexer. A test fails when they change. */
interface LexerInternals {
  /** The indentation that a line needs to continue the open value. */
  indentNext: number
  parseQuotedScalar(): Generator<string, unknown>
  parseFlowCollection(): Generator<string, unknown>
}

/**
 * Returns a lexer that accepts continuation lines of quoted texts and brackets in any column, as
 * Kubernetes' tools do. The library alone requires them to be indented.
 */
function lenientLexer(): Lexer {
  const lexer = new Lexer()
  const internals = lexer as unknown as LexerInternals
  for (const name of ['parseQuotedScalar', 'parseFlowCollection'] as const) {
    const parse = internals[name]
    internals[name] = function* (): Generator<string, unknown> {
      const { indentNext } = internals
      internals.indentNext = 0
      const next = yield* parse.call(lexer)
      internals.indentNext = indentNext
      return next
    }
  }
  return lexer
}

function marksAfter(marks: number, token: string): number {
  if (token === '\n' || token === '\r\n') return 0
  return token === '-' || token === '?' || token === ':' ? marks + 1 : marks
}

/**
 * Stops at the first error, to save time. `onError` is private in the library; a test covers it.
 */
function stopAtFirstError(composer: Composer, text: string): void {
  let first: YamlSyntaxError | undefined
  const onError = (source: unknown, _code: string, message: string, warning?: boolean): void => {
    if (warning === true) return
    first ??= syntaxError(text, offsetOf(source), message)
    throw first
  }
  Object.assign(composer, { onError })
}

function offsetOf(source: unknown): number {
  if (typeof source === 'number') return source
  if (Array.isArray(source)) return Number(source[0])
  return typeof source === 'object' && source !== null && 'offset' in source
    ? Number(source.offset)
    : 0
}

function syntaxError(text: string, offset: number, message: string): YamlSyntaxError {
  const truncated = message.slice(0, MESSAGE_LENGTH_MAX)
  return new YamlSyntaxError(`yaml: line ${lineAt(text, offset)}: ${truncated}`)
}

function tooLarge(limit: string): Error {
  return entityTooLarge(`limit is ${limit} of YAML, send JSON for more`, undefined)
}
