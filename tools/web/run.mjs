// Runs a module of Python in Pyodide under Node: node run.mjs '{"pyodide", "folders", "path", "cwd", "module", "words"}'.
// The folders have the same paths inside as outside.
const given = JSON.parse(process.argv[2]);
const { loadPyodide } = await import(`${given.pyodide}/pyodide.mjs`);
const python = await loadPyodide();
for (const root of given.folders) {
  python.FS.mkdirTree(root);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, root);
}
python.globals.set("given", python.toPy(given));
let code = 1;
try {
  code = python.runPython(`
import os, runpy, sys

os.chdir(given["cwd"])
sys.path[:0] = given["path"]
sys.argv = [given["module"], *given["words"]]
sys.dont_write_bytecode = True
code = 0
try:
    runpy.run_module(given["module"], run_name="__main__", alter_sys=True)
except SystemExit as end:
    code = end.code if isinstance(end.code, int) else int(end.code is not None)
int(code)
`);
} catch (error) {
  // Node would print the source of Pyodide, which is one line of a megabyte.
  console.error(error.message);
}
process.exitCode = code;
