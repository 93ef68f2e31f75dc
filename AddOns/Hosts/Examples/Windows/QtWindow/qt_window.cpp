/* SPDX-License-Identifier: Apache-2.0 */
#include "qt_window.h"

#include <QtWidgets/QApplication>
#include <QtWidgets/QLabel>

#include <CRLHostQt.h>

static QLabel *label;

void qt_window_show(void)
{
    static int count = 1;
    static char name[] = "qt-window", *arguments[] = {name, nullptr};

    new QApplication(count, arguments);
    label = new QLabel("waiting");
    label->setWindowTitle("CoreRunLoop in Qt");
    label->setAlignment(Qt::AlignCenter);
    label->resize(420, 140);
    label->show();
}

void qt_window_set_text(const char *text)
{
    label->setText(QString::fromUtf8(text));
}

bool qt_window_run(void)
{
    return CRLHostQtAttach() && QApplication::exec() == 0;
}
