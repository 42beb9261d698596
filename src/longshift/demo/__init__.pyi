from .demo_report import demo_page as demo_page, demo_sweep as demo_sweep, read_demo as read_demo
