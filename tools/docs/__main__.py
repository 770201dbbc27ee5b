"""`make docs`: write the generated parts of pages: rule pages, tables and the output of commands.

It also writes deploy/share/ (the manual page and the completions), the JSON Schema of policy files, and the picture of
the README's path of a write.
"""

import os
import shutil

from tools.docs import (
    audit_page,
    chart_values,
    claims_page,
    fields_page,
    json_output,
    lease_alerts,
    log_services,
    path_picture,
    policies_table,
    policy_schema,
    promises_page,
    states,
)
from tools.docs.commands import WIDTH, can_run_here, compute_output
from tools.docs.incident_page import PAGE, make_page
from tools.docs.pages import ROOT, find_examples, find_pages
from tools.docs.rule_pages import FOLDER, make_rule_pages
from tools.docs.shared_files import FOLDER as SHARE
from tools.docs.shared_files import make_shared_files


def main() -> None:
    """Write every generated page and file, and the output of every example."""
    os.chdir(ROOT)
    os.environ["COLUMNS"] = WIDTH
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name, text in make_rule_pages().items():
        (FOLDER / name).write_text(text)
    shared = make_shared_files()
    shutil.rmtree(SHARE, ignore_errors=True)
    for name, text in shared.items():
        (SHARE / name).parent.mkdir(parents=True)
        (SHARE / name).write_text(text)
    PAGE.write_text(make_page())
    fields_page.PAGE.write_text(fields_page.make_page())
    policies_table.PAGE.write_text(policies_table.make_page())
    audit_page.PAGE.write_text(audit_page.make_page())
    promises_page.PAGE.write_text(promises_page.make_page())
    claims_page.PAGE.write_text(claims_page.make_page())
    json_output.SCHEMA.write_text(json_output.make_text())
    json_output.PAGE.write_text(json_output.make_page())
    chart_values.PAGE.write_text(chart_values.make_page())
    log_services.PAGE.write_text(log_services.make_page())
    states.PAGE.write_text(states.make_page())
    path_picture.FILE.write_text(path_picture.draw_picture())
    policy_schema.FILE.write_text(policy_schema.make_text())
    policy_schema.PAGE.write_text(policy_schema.make_page())
    lease_alerts.FILE.write_text(lease_alerts.make_text())
    lease_alerts.RECORDER.write_text(lease_alerts.make_recorder_text())
    for page in find_pages():
        text = page.read_text()
        for example in filter(can_run_here, find_examples(page)):
            command = example.text[: len(example.text) - len(example.output)]
            text = text.replace(example.text, command + compute_output(example), 1)
        page.write_text(text)


if __name__ == "__main__":
    main()
